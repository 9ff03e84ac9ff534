// What @salesforce/agents makes of the preview API of an org: prints one JSON object with what each call gave.
const { AuthInfo, Connection, SfProject } = require("@salesforce/core");
const { Agent } = require("@salesforce/agents");

async function main() {
  const { ORG_URL: instanceUrl, ORG_TOKEN: accessToken, NAME: aabName, BROKEN: broken } = process.env;
  const authInfo = await AuthInfo.create({ username: accessToken, accessTokenOptions: { instanceUrl, accessToken } });
  const connection = await Connection.create({ authInfo });
  const project = await SfProject.resolve(process.cwd());
  const agent = await Agent.init({ connection, project, aabName });
  const compiled = await agent.compile();
  const contextVariables = [
    { name: "$Context.CustomerId", type: "Text", value: "C1" },
    { name: "visits", type: "Number", value: 4 },
  ];
  const started = await agent.preview.start({ contextVariables });
  const sent = await agent.preview.send("Repair 7?");
  const traces = await agent.preview.getAllTraces();
  await agent.preview.end();
  const failed = await (await Agent.init({ connection, project, aabName: broken })).compile();
  process.stdout.write(JSON.stringify({ status: compiled.status, name: agent.name, started, sent, traces, failed }));
}

main().catch((error) => {
  process.stderr.write(error.stack);
  process.exit(1);
});
