import { call, eventually, openEventStream, type Receiver } from "@halyard/testing";
import type { Demo } from "../../system/launched.ts";
import { must } from "../../system/tenancy.ts";
import type { ReleaseFixture } from "./release-fixture.ts";

/** Fills a new demo project through the public API with an example of everything that a release stores. */
export type Filled = Pick<ReleaseFixture, "keys" | "usage" | "webhooks"> & {
  flags: Record<string, string>;
  environments: Record<string, string>;
  userId: string;
};

const longAhead = {
  enable: "2099-01-01T09:00:00Z",
  windowStart: "2099-06-01T00:00:00Z",
  windowEnd: "2099-06-02T00:00:00Z",
};

const germany = { attribute: "country", operator: "in", value: ["DE", "AT", "CH"] };
const recentApp = { attribute: "app_version", operator: "semver_gte", value: "2.4.0" };
const staff = { attribute: "email", operator: "ends_with", value: "@example.com" };

const flagsToMake = {
  checkout: {
    name: "New checkout",
    description: "One page instead of three.",
    enabled: true,
    targeting_rules: [
      { id: "staff", name: "Staff", conditions: [staff] },
      { id: "dach", conditions: [germany, recentApp], rollout_percentage: 40 },
    ],
  },
  "new-search": { name: "New search", type: "experiment", enabled: true, rollout_percentage: 25 },
  "dark-mode": { name: "Dark mode", type: "permission" },
  "payments.kill": { name: "Payments", type: "kill_switch", enabled: true },
  "beta-program": {
    name: "Beta program",
    enabled: true,
    targeting_rules: [
      { conditions: [{ attribute: "plan", operator: "equals", value: "free" }], value: false },
      { conditions: [{ attribute: "age", operator: "gte", value: 18 }] },
    ],
  },
  "old-banner": { name: "Old banner", enabled: true },
  "checkout-color": {
    name: "Checkout color",
    value_type: "string",
    variations: [
      { key: "blue", value: "#0057b8" },
      { key: "red", value: "#c8102e" },
    ],
    enabled: true,
    bucket_by: "company",
    serve: {
      split: [
        { variation: "blue", weight: 33.33 },
        { variation: "red", weight: 66.67 },
      ],
    },
  },
  "delivery-fee": {
    name: "Delivery fee",
    value_type: "number",
    variations: [
      { key: "reduced", value: 0.1 },
      { key: "full", value: 4.9 },
    ],
    enabled: true,
    targeting_rules: [{ conditions: [{ audience: "beta" }], serve: { variation: "reduced" } }],
  },
  "sale-banner": {
    name: "Sale banner",
    value_type: "object",
    variations: [{ key: "sale", value: { title: "Spring sale", days: [1, 2, 3] } }],
    enabled: true,
    requires: [{ flag: "checkout", is: "on" }],
  },
};

const beta = {
  key: "beta",
  name: "Beta testers",
  match: [[{ attribute: "plan", operator: "equals", value: "team" }]],
};

export async function fillRelease(demo: Demo, receiver: Receiver): Promise<Filled> {
  const url = `${demo.base_url}/api/v1`;
  const project = `${url}/projects/${demo.project_id}`;
  const operate = (path: string, body?: unknown, method = "POST") =>
    must(`${project}${path}`, { method, key: demo.operator_token, body });
  const change = (path: string, body?: unknown, method = "PATCH") =>
    must(`${url}${path}`, { method, key: demo.server_key, body });

  await operate("/environments", { name: "preview" });
  const { environments: listed } = await operate("/environments", undefined, "GET");
  const environments = idsBy(listed as { id: string; name: string }[], "name");
  const { users } = await must(`${url}/organizations/${demo.organization_id}/users`, {
    key: demo.operator_token,
  });
  const userId = users[0].id as string;
  const keys = await issueKeys({ demo, environments, userId, operate });

  await change("/audiences", beta, "POST");
  await change("/audiences/beta/list", { add: ["user-1", "user-8"] });
  const flags: Record<string, string> = {};
  for (const [key, fields] of Object.entries(flagsToMake))
    flags[key] = (await change("/flags", { key, ...fields }, "POST")).id;
  const inEnvironment = (flag: string, environment: string) =>
    `/flags/${flags[flag]}/environments/${environments[environment]}`;
  await change(`/flags/${flags["payments.kill"]}`, { enabled: false });
  await change(`/flags/${flags["new-search"]}`, { name: "Search 2", rollout_percentage: 60 });
  await change(`${inEnvironment("new-search", "development")}/rollback`, undefined, "POST");
  await change(inEnvironment("checkout", "staging"), { enabled: true, rollout_percentage: 10 });
  await change(inEnvironment("dark-mode", "staging"), { enabled: true });
  await change(`/flags/${flags["old-banner"]}`, undefined, "DELETE");

  await change(
    `${inEnvironment("dark-mode", "development")}/schedule`,
    { enable_at: longAhead.enable },
    "POST",
  );
  await change(
    `${inEnvironment("checkout", "production")}/schedule`,
    { enable_at: longAhead.windowStart, disable_at: longAhead.windowEnd },
    "POST",
  );
  const cleared = `${inEnvironment("beta-program", "development")}/schedule`;
  await change(cleared, { disable_at: longAhead.enable }, "POST");
  await change(cleared, undefined, "DELETE");

  await addPerson(demo);
  await protect({ operate, change, flagId: flags.checkout, environmentId: environments.preview });
  const webhooks = await makeWebhooks(`${project}/webhooks`, demo.server_key, receiver);
  await change(`/flags/${flags["payments.kill"]}`, { enabled: true });
  const requests = await useFlags(demo, keys);
  const usage = { organization_id: demo.organization_id, requests };
  return { keys, usage, webhooks, flags, environments, userId };
}

/** Creates keys, including environment-only, rotated and revoked ones. */
async function issueKeys(given: {
  demo: Demo;
  environments: Record<string, string>;
  userId: string;
  operate: (path: string, body?: unknown, method?: string) => Promise<{ id: string; key: string }>;
}): Promise<Record<string, string>> {
  const { demo, environments, userId, operate } = given;
  const issue = (environment: string, fields: { kind: string; name: string }, more = {}) =>
    operate(`/environments/${environments[environment]}/keys`, {
      ...{ ...fields, user_id: userId, ...more },
    });
  const web = await issue("development", { kind: "client", name: "Web" });
  const staging = await issue(
    "staging",
    { kind: "server", name: "Staging backend" },
    { environment_only: true },
  );
  const ending = await issue(
    "production",
    { kind: "client", name: "Until 2099" },
    { expires_at: longAhead.enable },
  );
  const rotatedOut = await issue("development", { kind: "client", name: "Phone" });
  const development = `/environments/${environments.development}/keys`;
  const rotatedIn = await operate(`${development}/${rotatedOut.id}/rotate`, { overlap_seconds: 0 });
  const revoked = await issue("development", { kind: "server", name: "Lost laptop" });
  await operate(`${development}/${revoked.id}`, undefined, "DELETE");
  return {
    operator: demo.operator_token,
    client: demo.client_key,
    server: demo.server_key,
    web: web.key,
    staging: staging.key,
    ending: ending.key,
    rotatedOut: rotatedOut.key,
    rotatedIn: rotatedIn.key,
    revoked: revoked.key,
  };
}

/** Creates a person with a role, and a service user. */
async function addPerson(demo: Demo): Promise<void> {
  const organization = `${demo.base_url}/api/v1/organizations/${demo.organization_id}`;
  const create = (path: string, body: object) =>
    must(`${organization}/${path}`, { method: "POST", key: demo.operator_token, body });
  const { id: user_id } = await create("users", { email: "grace@example.com", name: "Grace" });
  await create("users", { email: "pipeline@example.com", name: "Pipeline", kind: "service" });
  await create("grants", {
    ...{ subject: { user_id }, role: "editor" },
    scope: { project: demo.project_id },
  });
}

/** Protects an environment. Proposes a change of it, which stays open. */
async function protect(given: {
  operate: (path: string, body: unknown, method: string) => Promise<unknown>;
  change: (path: string, body: unknown, method: string) => Promise<unknown>;
  flagId: string | undefined;
  environmentId: string | undefined;
}): Promise<void> {
  const { operate, change, flagId: flag_id, environmentId: environment_id } = given;
  await operate(`/environments/${environment_id}`, { protected: { approvals: 2 } }, "PATCH");
  const changes = [{ ...{ kind: "state", flag_id, environment_id }, patch: { enabled: true } }];
  await change("/change-requests", { title: "Checkout for the preview", changes }, "POST");
}

const failing = "/down";

async function makeWebhooks(path: string, key: string, receiver: Receiver) {
  receiver.answer({ kind: "answer", status: 500, body: "out of order" }, failing);
  const make = async (fields: { name: string; url: string; events: string[]; secret: string }) => {
    const { id, project_id } = await must(path, { method: "POST", key, body: fields });
    return { path: `/api/v1/projects/${project_id}/webhooks/${id}`, secret: fields.secret };
  };
  return {
    deployments: await make({
      name: "Deployments",
      url: `${receiver.url}/deployments`,
      events: ["flag.created", "flag.toggled", "flag_state.updated"],
      secret: "a shared secret of the fixture",
    }),
    chat: await make({
      name: "Chat",
      url: `${receiver.url}${failing}`,
      events: ["flag.toggled"],
      secret: "whsec_YSBzZWNvbmQgc2VjcmV0IG9mIHRoZSBmaXh0dXJl",
    }),
  };
}

/** Sends SDK requests. Returns the number of requests that are counted. */
async function useFlags(demo: Demo, keys: Record<string, string>): Promise<number> {
  const { base_url: url } = demo;
  const users = Array.from({ length: 12 }, (_, index) => `user-${index}`);
  // A write returns after the edge has its key or flag, so the edge can serve it immediately.
  for (const user of users)
    await must(`${url}/api/v1/sdk/flags?user_id=${user}`, { key: keys.web ?? "" });
  await must(`${url}/api/v1/sdk/evaluate?key=checkout&user_id=ada`, { key: demo.client_key });
  await must(`${url}/ofrep/v1/evaluate/flags`, {
    method: "POST",
    key: demo.client_key,
    body: { context: { targetingKey: "ada", country: "DE" } },
  });
  const stream = await openEventStream(`${url}/api/v1/sdk/stream`, {
    authorization: `Bearer ${keys.web}`,
  });
  await eventually(() => stream.events.length > 0, { because: "the stream sends its first event" });
  stream.close();
  return users.length + 3;
}

/** Waits until usage-metering has counted every request. */
export async function awaitCounted(demo: Demo, requests: number): Promise<void> {
  await eventually(
    async () => {
      const { body } = await call(`${demo.base_url}/api/v1/usage`, { key: demo.server_key });
      if (body.requests.used !== requests) throw new Error(JSON.stringify(body.requests));
      return true;
    },
    { because: `${requests} requests are counted` },
  );
}

/** Waits until the newest delivery of a webhook has a status. Returns its id. */
export async function awaitDelivery(
  demo: Demo,
  webhook: { path: string },
  status: string,
): Promise<string> {
  return eventually(
    async () => {
      const { deliveries } = await must(`${demo.base_url}${webhook.path}/deliveries`, {
        key: demo.server_key,
      });
      const [newest] = deliveries as { id: string; status: string }[];
      if (newest?.status !== status) throw new Error(`the newest is ${newest?.status}`);
      return newest.id;
    },
    { because: `the newest delivery is ${status}` },
  );
}

function idsBy<K extends string>(list: ({ id: string } & Record<K, string>)[], field: K) {
  return Object.fromEntries(list.map((item) => [item[field], item.id]));
}
