// What @salesforce/agents makes of an org: prints one JSON object with what each call gave.
const { AuthInfo, Connection } = require("@salesforce/core");
const { AgentTest, AgentTester, createAgentTester } = require("@salesforce/agents");

async function follow(tester, name) {
  const started = await tester.start(name);
  const polled = await tester.poll(started.runId);
  return { started, polled, results: await tester.results(started.runId), status: await tester.status(started.runId) };
}

async function cancel(tester, name) {
  const { runId } = await tester.start(name);
  const canceled = await tester.cancel(runId).catch((error) => ({ error: error.message }));
  const again = await tester.cancel(runId).catch((error) => error.message);
  return { canceled, again, ...(await tester.results(runId)) };
}

async function create(connection, name) {
  const { contents, deployResult } = await AgentTest.create(connection, name, "spec.yaml", { outputDir: "created" });
  return { status: deployResult.response.status, contents };
}

async function main() {
  const { ORG_URL: instanceUrl, ORG_TOKEN: accessToken, NAME: name, WAITING: waiting, CREATED: created } = process.env;
  const authInfo = await AuthInfo.create({ username: accessToken, accessTokenOptions: { instanceUrl, accessToken } });
  const connection = await Connection.create({ authInfo });
  const tester = new AgentTester(connection);
  const { type } = await createAgentTester(connection, { testDefinitionName: name });
  const said = {
    runner: type,
    listed: (await AgentTest.list(connection)).map(({ fullName }) => fullName),
    created: await create(connection, created),
    followed: await follow(tester, name),
    canceled: await cancel(tester, waiting),
    unknown: await tester.start("Never_There").catch((error) => error.message),
    spec: await new AgentTest({ name }).getTestSpec(connection),
  };
  process.stdout.write(JSON.stringify(said));
}

main();
