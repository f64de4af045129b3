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
  evaluate(flag, attributes) {
    if (findUnknown(flag) !== undefined) return null;
    const { evaluate, variationOf } = compile(flag);
    const context = contextOf(attributes);
    const outcome = evaluate(context);
    if (variationOf === undefined) return outcome;
    const { key = null, value = null } = flag.variations[variationOf(context)] ?? {};
    return { value, variation: key, reason: outcome.reason };
  },
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
    const outcome = evaluateTyped(client, { key, ...settings }, context);
    closing.push(client.close());
    return outcome.reason === "flag_not_found" ? null : outcome;
  },
});

/** Evaluates a flag with the method for its type. Null is the caller's own default. */
function evaluateTyped(client, { key, value_type: type = "boolean" }, context) {
  const methods = {
    string: () => client.getStringDetails(key, context, ""),
    number: () => client.getNumberDetails(key, context, 0),
    object: () => client.getObjectDetails(key, context, {}),
  };
  if (methods[type] === undefined) return client.evaluate(key, context);
  const { value, variation, reason } = methods[type]();
  return { value: variation === null ? null : value, variation, reason };
}
await Promise.all(closing);

process.stdout.write(JSON.stringify({ evaluation, "server-sdk": serverSdk }));
