import { once } from "node:events";
import { createServer } from "node:http";
import { runSuite } from "@halyard/conformance";
import { createClient } from "@halyard/server-sdk";
// The module of the page of @halyard/conformance.
import { evaluateCase } from "./evaluate.mjs";

/** Runs the conformance cases with each package that has an engine, and prints the results as JSON. */
const evaluation = await runSuite({ evaluate: evaluateCase });

/** Returns the chunks of lists. The flags are those of the bootstrap object. */
const lists = createServer(({ url = "" }, response) => {
  const hex = served[url.split("/").at(-1) ?? ""];
  response.writeHead(hex === undefined ? 503 : 200, { "content-type": "application/octet-stream" });
  response.end(Buffer.from(hex ?? "", "hex"));
});
/** The chunks of the current case, by their SHA-256. */
let served = {};
lists.listen(0, "127.0.0.1");
await once(lists, "listening");
const options = {
  baseUrl: `http://127.0.0.1:${lists.address().port}`,
  serverKey: `hs_${"a".repeat(16)}_${"A".repeat(43)}`,
  logger: { info() {}, warn() {}, error() {} },
};

const serverSdk = await runSuite({
  async evaluate(flag, context, { flags, audiences, chunks }) {
    served = chunks;
    const client = createClient({
      ...options,
      bootstrap: bootstrapOf([flag, ...flags], audiences),
    });
    if (flag.enabled && hasAllChunks(audiences, chunks)) await changeOf(client, flag.key);
    const outcome = evaluateTyped(client, flag, context);
    await client.close();
    return outcome.reason === "flag_not_found" ? null : outcome;
  },
});
lists.close();
process.stdout.write(JSON.stringify({ evaluation, "server-sdk": serverSdk }));

/** Written as JSON, so that keys such as `__proto__` are own members. */
function bootstrapOf(flags, audiences) {
  const members = flags.map(
    ({ key, ...settings }) =>
      `${JSON.stringify(key)}:${JSON.stringify({ ...settings, version: 1 })}`,
  );
  return {
    format: 2,
    environment_id: "0b8f3a52-6a0e-4f8e-9d37-0f6f3d1f2a10",
    flags: JSON.parse(`{${members.join(",")}}`),
    audiences,
  };
}

/** Returns whether there are lists with chunks, and no chunk is missing. */
function hasAllChunks(audiences, chunks) {
  const names = Object.values(audiences).flatMap(({ list }) => list?.chunks ?? []);
  return names.length > 0 && names.every((name) => Object.hasOwn(chunks, name));
}

/** Waits until a flag changes, because the last chunk has arrived. */
function changeOf(client, key) {
  return new Promise((resolve) => {
    client.on("change", ({ keys }) => {
      if (keys.includes(key)) resolve();
    });
  });
}

/** Evaluates a flag with the method for its type. Null is the caller's own default. */
function evaluateTyped(client, { key, value_type: type = "boolean" }, context) {
  const methods = {
    boolean: () => client.evaluate(key, context),
    string: () => client.getStringDetails(key, context, ""),
    number: () => client.getNumberDetails(key, context, 0),
    object: () => client.getObjectDetails(key, context, {}),
  };
  const { value, variation, reason } = (methods[type] ?? methods.boolean)();
  return { value: variation === null ? null : value, variation, reason };
}
