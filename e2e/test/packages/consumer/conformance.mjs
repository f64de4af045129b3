import { runSuite } from "@halyard/conformance";
import { compile, contextOf, findUnknown } from "@halyard/evaluation";
import { createClient } from "@halyard/server-sdk";

/** Runs the conformance cases with each package that has an engine, and prints the results as JSON. */
const options = {
  // Nothing listens at this address, so the flags are those of the bootstrap object.
  baseUrl: "http://127.0.0.1:1",
  serverKey: `hs_${"a".repeat(16)}_${"A".repeat(43)}`,
  logger: { info() {}, warn() {}, error() {} },
};

const evaluation = await runSuite({
  evaluate: (flag, context) =>
    findUnknown(flag) === undefined ? compile(flag).evaluate(contextOf(context)) : null,
});

const closing = [];
const serverSdk = await runSuite({
  evaluate({ key, ...settings }, context) {
    const bootstrap = {
      format: 2,
      environment_id: "0b8f3a52-6a0e-4f8e-9d37-0f6f3d1f2a10",
      flags: JSON.parse(`{${JSON.stringify(key)}:${JSON.stringify({ ...settings, version: 1 })}}`),
    };
    const client = createClient({ ...options, bootstrap });
    const outcome = client.evaluate(key, context);
    closing.push(client.close());
    return outcome.reason === "flag_not_found" ? null : outcome;
  },
});
await Promise.all(closing);

process.stdout.write(JSON.stringify({ evaluation, "server-sdk": serverSdk }));
