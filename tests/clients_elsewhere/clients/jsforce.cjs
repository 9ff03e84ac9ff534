// What jsforce makes of an org: prints one JSON object with what each call gave.
const jsforce = require("jsforce");
const { readFileSync } = require("node:fs");

const metadata = "AiEvaluationDefinition";

async function ask(connection) {
  const { metadata: api } = connection;
  return {
    identity: await connection.identity(),
    organization: await connection.query("SELECT Name, OrganizationType FROM Organization"),
    types: (await api.describe()).metadataObjects.map((each) => each.xmlName),
    listed: (await api.list([{ type: metadata }, { type: "AiTestingDefinition" }])).map((each) => each.fullName),
    unknownType: await api.list([{ type: "NopeType" }]).catch((error) => error.errorCode),
  };
}

async function read({ metadata: api }, name) {
  const [found, missing] = await api.read(metadata, [name, "Never_There"]);
  return { found, missing };
}

async function deploy({ metadata: api }, zip) {
  const validation = await api.deploy(zip, { checkOnly: true, singlePackage: true }).complete(true);
  const quick = await api.deployRecentValidation({ id: validation.id });
  const quickEnd = await end(api, quick, false);
  const rest = await api.deployRest(zip, { rollbackOnError: true, singlePackage: true });
  return {
    validation,
    quick: quickEnd,
    rest: await end(api, rest.id, true),
    cancelOver: await api.cancelDeploy(validation.id).catch((error) => error.errorCode),
    unknownJob: await api.checkDeployStatus("0Af000000000999AAA").catch((error) => error.errorCode),
  };
}

async function end(api, id, rest) {
  for (;;) {
    const result = await api.checkDeployStatus(id, true, rest);
    if (result.done) return result;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function retrieve({ metadata: api }, name) {
  const types = [{ name: metadata, members: [name, "Never_There"] }];
  const done = await api.retrieve({ apiVersion: "66.0", unpackaged: { types, version: "66.0" } }).complete();
  return { ...done, zipFile: Buffer.from(done.zipFile, "base64").includes(`${name}.aiEvaluationDefinition`) };
}

async function save({ metadata: api }, name) {
  const testCase = {
    number: 1,
    inputs: { utterance: "Where is it?" },
    expectation: { name: "topic_sequence_match", expectedValue: "Orders" },
  };
  const component = { fullName: name, name, subjectName: "Desk", subjectType: "AGENT", testCase };
  return {
    created: await api.create(metadata, component),
    again: await api.create(metadata, component),
    updated: await api.update(metadata, { ...component, description: "changed" }),
    upserted: await api.upsert(metadata, [component]),
    renamed: await api.rename(metadata, name, `${name}_2`),
    read: await api.read(metadata, `${name}_2`),
    deleted: await api.delete(metadata, [`${name}_2`, "Never_There"]),
  };
}

async function main() {
  const { ORG_URL: instanceUrl, ORG_TOKEN: accessToken, NAME: name } = process.env;
  const connection = new jsforce.Connection({ instanceUrl, accessToken, version: "66.0" });
  connection.metadata.pollInterval = 20;
  const stranger = new jsforce.Connection({ instanceUrl, accessToken: `${accessToken}x`, version: "66.0" });
  const said = {
    deployed: await deploy(connection, readFileSync("deploy.zip")),
    asked: await ask(connection),
    read: await read(connection, name),
    saved: await save(connection, `${name}_saved`),
    retrieved: await retrieve(connection, name),
    refused: await stranger.metadata.describe().catch((error) => error.errorCode),
    refusedRest: await stranger.query("SELECT Id FROM Organization").catch((error) => error.errorCode),
  };
  process.stdout.write(JSON.stringify(said));
}

main();
