import { createTestClient as createBrowserTestClient } from "@halyard/browser-sdk";
import { compile, contextOf } from "@halyard/evaluation";
import { HalyardProvider } from "@halyard/openfeature-server";
import { HalyardProvider as WebProvider } from "@halyard/openfeature-web";
import * as react from "@halyard/react";
import { createClient, createTestClient } from "@halyard/server-sdk";
import { OpenFeature } from "@openfeature/server-sdk";

/** Uses every package and prints the results as JSON. */
const targeted = {
  enabled: true,
  rollout_percentage: 100,
  targeting_rules: [{ conditions: [{ attribute: "country", operator: "equals", value: "DE" }] }],
};
const user = { id: "user-1", country: "DE" };

const client = createClient({
  // Nothing listens at this address, so the flags are those of the bootstrap object.
  baseUrl: "http://127.0.0.1:1",
  serverKey: `hs_${"a".repeat(16)}_${"A".repeat(43)}`,
  bootstrap: {
    format: 2,
    environment_id: "0b8f3a52-6a0e-4f8e-9d37-0f6f3d1f2a10",
    flags: { "new-checkout": { ...targeted, version: 1 } },
  },
  logger: { info() {}, warn() {}, error() {} },
});
const evaluation = client.evaluate("new-checkout", user);
await client.close();

await OpenFeature.setProviderAndWait(
  new HalyardProvider({ client: createTestClient({ "new-checkout": true }) }),
);
const openFeature = await OpenFeature.getClient().getBooleanValue("new-checkout", false, {
  targetingKey: "user-1",
});
await OpenFeature.close();

const results = {
  evaluation: compile({ key: "new-checkout", ...targeted }).evaluate(contextOf(user)),
  "server-sdk": evaluation,
  "openfeature-server": openFeature,
  "browser-sdk": createBrowserTestClient({ "new-checkout": true }).isEnabled("new-checkout"),
  "openfeature-web": new WebProvider({ baseUrl: "http://127.0.0.1:1", clientKey: "" }).metadata,
  react: Object.keys(react).toSorted(),
};
process.stdout.write(JSON.stringify(results));
