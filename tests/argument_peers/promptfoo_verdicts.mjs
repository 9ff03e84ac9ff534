// Print the verdicts of trajectory:tool-args-match on the cases of standard input; runs where promptfoo is installed.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(join(process.argv[2], 'package.json'));
const { default: promptfoo } = await import(pathToFileURL(require.resolve('promptfoo')));
const [tool, cases] = JSON.parse(readFileSync(0, 'utf8'));

const span = (call, place) => ({
  spanId: `${place}`,
  name: `execute_tool ${call.name}`,
  startTime: place,
  endTime: place + 1,
  attributes: { 'tool.name': call.name, 'tool.arguments': JSON.stringify(call.input) },
});

const verdicts = [];
for (const { expected, exact, calls } of cases) {
  const result = await promptfoo.assertions.runAssertion({
    assertion: {
      type: 'trajectory:tool-args-match',
      value: { name: tool, args: expected, mode: exact ? 'exact' : 'partial' },
    },
    test: {},
    providerResponse: { output: 'done' },
    traceId: '1',
    traceData: { traceId: '1', evaluationId: '1', testCaseId: '1', spans: calls.map(span) },
  });
  verdicts.push(result.pass);
}
process.stdout.write(JSON.stringify(verdicts), () => process.exit(0));
