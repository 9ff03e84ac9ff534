// What source-deploy-retrieve makes of an org: prints one JSON object with what each operation gave.
const { AuthInfo, Connection } = require("@salesforce/core");
const { ComponentSet, DestructiveChangesType } = require("@salesforce/source-deploy-retrieve");

const type = "AiEvaluationDefinition";
const shown = ({ response }, files) => ({
  status: response.status,
  files: files.map(({ fullName, state, error, lineNumber, columnNumber }) => ({
    fullName, state, error, lineNumber, columnNumber,
  })),
});

async function deploy(connection, set, options = {}) {
  const operation = await set.deploy({ usernameOrConnection: connection, ...options });
  const result = await operation.pollStatus(20, 60);
  return shown(result, result.getFileResponses());
}

async function retrieve(connection, fullName) {
  const operation = await new ComponentSet([{ type, fullName }]).retrieve({
    usernameOrConnection: connection, output: "retrieved", format: "source",
  });
  const result = await operation.pollStatus(20, 60);
  return shown(result, result.getFileResponses());
}

// Marks the components of a set, which cannot be deployed after that.
function toDelete(set) {
  const deletion = new ComponentSet();
  for (const component of set.getSourceComponents()) deletion.add(component, DestructiveChangesType.POST);
  return deletion;
}

async function main() {
  const { ORG_URL: instanceUrl, ORG_TOKEN: accessToken, NAME: name } = process.env;
  const authInfo = await AuthInfo.create({ username: accessToken, accessTokenOptions: { instanceUrl, accessToken } });
  const connection = await Connection.create({ authInfo });
  const sources = ComponentSet.fromSource("force-app");
  const one = ComponentSet.fromSource({ fsPaths: ["force-app"], include: new ComponentSet([{ type, fullName: name }]) });
  const said = {
    failed: await deploy(connection, sources),
    partial: await deploy(connection, sources, { apiOptions: { rollbackOnError: false } }),
    rest: await deploy(connection, one, { apiOptions: { rest: true } }),
    retrieved: await retrieve(connection, name),
    missing: await retrieve(connection, "Never_There"),
    deleted: await deploy(connection, toDelete(one)),
  };
  process.stdout.write(JSON.stringify(said));
}

main();
