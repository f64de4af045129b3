import { eventually, type Receiver } from "@halyard/testing";
import { must } from "../../system/tenancy.ts";
import type { Keys, Transcript } from "./transcript.ts";

/** Ids of the resources that the scenario has created, by the names of path parameters. Later chapters use them. */
export type Ids = Record<string, string>;

const at2099 = "2099-01-01T00:00:00Z";
const at2100 = "2100-01-01T00:00:00Z";

const rules = [
  { name: "staff", conditions: [{ attribute: "email", operator: "ends_with", value: "@corp.io" }] },
  {
    conditions: [{ attribute: "country", operator: "in", value: ["DE", "AT"] }],
    rollout_percentage: 20,
  },
  { conditions: [{ attribute: "plan", operator: "equals", value: "banned" }], value: false },
];

/** Creates and changes an organization with all kinds of resources, through every management route. */
export async function useManagement(
  { ask }: Transcript,
  {
    keys,
    receiver,
    url,
    awaitEventsRead,
    awaitAudited,
  }: {
    keys: Keys;
    receiver: Receiver;
    url: string;
    awaitEventsRead: () => Promise<void>;
    awaitAudited: () => Promise<void>;
  },
): Promise<Ids> {
  const ids: Ids = {};
  const operator = (title: string, method: string, path: string, body?: unknown) =>
    ask(title, { as: "operator", method, path: `/api/v1${path}`, body });

  const organization = await operator("create an organization", "POST", "/organizations", {
    name: "Acme",
    plan: "pro",
  });
  ids.organizationId = organization.body.id;
  const ofOrganization = `/organizations/${ids.organizationId}`;
  const user = await operator("create a user", "POST", `${ofOrganization}/users`, {
    email: "ada@example.com",
    name: "Ada",
  });
  ids.userId = user.body.id;
  const invited = await operator("invite a person", "POST", `${ofOrganization}/invitations`, {
    ...{ email: "grace@example.com", name: "Grace", role: "viewer" },
  });
  ids.invitationId = invited.body.id;
  const granted = await operator("give a role", "POST", `${ofOrganization}/grants`, {
    subject: { user_id: invited.body.user.id },
    role: "editor",
    scope: { organization: ids.organizationId },
  });
  ids.grantId = granted.body.id;
  ids.passkeyId = "no-passkey";
  await operator("list roles", "GET", `${ofOrganization}/grants`);
  await operator("list invitations", "GET", `${ofOrganization}/invitations`);
  const project = await operator("create a project", "POST", `${ofOrganization}/projects`, {
    name: "Web",
    environments: ["production", "staging"],
  });
  ids.projectId = project.body.id;
  const ofProject = `/projects/${ids.projectId}`;
  ids.environmentId = project.body.environments[0].id;
  ids.envId = ids.environmentId as string;
  const staging = project.body.environments[1].id as string;
  const added = await operator("add an environment", "POST", `${ofProject}/environments`, {
    name: "preview",
  });
  await operator("an environment's name is taken", "POST", `${ofProject}/environments`, {
    name: "preview",
  });

  const issue = async (name: string, kind: string, environment: string, more = {}) => {
    const path = `${ofProject}/environments/${environment}/keys`;
    const issued = await operator(`issue the key ${name}`, "POST", path, {
      kind,
      name,
      user_id: ids.userId,
      ...more,
    });
    keys[name] = issued.body.key;
    return issued.body.id as string;
  };
  await issue("server", "server", ids.environmentId as string);
  await issue("client", "client", ids.environmentId as string);
  await issue("staging", "server", staging);
  await issue("restricted", "server", staging, { environment_only: true });
  ids.keyId = await issue("ending", "server", staging, { expires_at: at2099 });
  const ofKeys = `${ofProject}/environments/${staging}/keys`;
  const rotated = await operator("rotate a key", "POST", `${ofKeys}/${ids.keyId}/rotate`, {
    overlap_seconds: 3600,
  });
  keys.ending = rotated.body.key;
  ids.keyId = rotated.body.id;
  const revoked = await issue("revoked", "client", ids.environmentId as string);
  const environmentKeys = `${ofProject}/environments/${ids.environmentId}/keys`;
  await operator("revoke a key", "DELETE", `${environmentKeys}/${revoked}`);
  await operator("revoke it again", "DELETE", `${environmentKeys}/${revoked}`);
  for (const path of [
    "/organizations",
    ofOrganization,
    `${ofOrganization}/users`,
    `${ofOrganization}/users/${ids.userId}`,
    `${ofOrganization}/projects`,
    `${ofOrganization}/projects/${ids.projectId}`,
    `${ofProject}/environments`,
    `${ofProject}/environments/${added.body.id}`,
    environmentKeys,
    `${ofKeys}/${ids.keyId}`,
  ])
    await operator("read as the operator", "GET", path);
  await operator("list the plans", "GET", "/plans");
  await ask("list the plans with a client key", { as: "client", path: "/api/v1/plans" });
  await operator("change the plan", "PATCH", ofOrganization, { plan: "growth" });
  await operator("an unknown plan", "PATCH", ofOrganization, { plan: "gold" });

  await useFlags({ ask }, ids, staging);
  await useAudiences({ ask }, ids);
  await useChangeRequests({ ask }, ids, staging);
  // The audit log receives changes of webhooks and schedules later. Waiting gives them the order of the scenario.
  const askAndWait: Asking["ask"] = async (title, asked) => {
    const reply = await ask(title, asked);
    if (asked.method !== "GET") await awaitAudited();
    return reply;
  };
  await useSchedules({ ask: askAndWait }, ids, { staging, url, keys });
  await awaitEventsRead();
  await useWebhooks({ ask: askAndWait }, ids, { keys, receiver, url });
  await operator("read the audit log", "GET", `${ofProject}/changes?limit=100`);
  await ask("read the audit log of one flag, a page", {
    as: "server",
    path: `/api/v1${ofProject}/changes?flag_id=${ids.flagId}&limit=2`,
  });
  return ids;
}

type Asking = Pick<Transcript, "ask">;

async function useFlags({ ask }: Asking, ids: Ids, staging: string): Promise<void> {
  const flag = (title: string, method: string, path: string, body?: unknown, headers = {}) =>
    ask(title, { as: "server", method, path: `/api/v1/flags${path}`, body, headers });

  const created = await flag("create a flag", "POST", "", { key: "checkout", name: "Checkout" });
  ids.id = ids.flagId = created.body.id;
  ids.key = "checkout";
  const repeated = { "Idempotency-Key": "create-search" };
  const search = {
    key: "search",
    name: "Search",
    description: "Finds things.",
    type: "experiment",
    enabled: true,
    rollout_percentage: 30,
    targeting_rules: rules,
  };
  const second = await flag("create a flag that is enabled", "POST", "", search, repeated);
  await flag("repeat it with its Idempotency-Key", "POST", "", search, repeated);
  await flag("another body with this key", "POST", "", { ...search, name: "Other" }, repeated);
  await flag("a flag's key is taken", "POST", "", { key: "checkout", name: "Again" });
  const third = await flag("create a flag to delete", "POST", "", { key: "old", name: "Old" });
  await flag("enable a flag", "PATCH", `/${ids.id}`, { enabled: true });
  await flag("change nothing", "PATCH", `/${ids.id}`, { enabled: true });
  await flag("change everything", "PATCH", `/${ids.id}`, {
    name: "Checkout 2",
    description: "New.",
    type: "operational",
    enabled: false,
    rollout_percentage: 50,
    targeting_rules: rules,
  });
  await flag("change by PUT", "PUT", `/${ids.id}`, { enabled: true });
  await flag("change if it matches", "PATCH", `/${ids.id}`, { name: "C" }, { "If-Match": '"4"' });
  await flag("change if it does not", "PATCH", `/${ids.id}`, { name: "D" }, { "If-Match": '"1"' });
  await flag("a malformed If-Match", "PATCH", `/${ids.id}`, { name: "D" }, { "If-Match": "1" });
  const inStaging = `/${ids.id}/environments/${staging}`;
  await flag("read a state", "GET", inStaging);
  await flag("change a state", "PATCH", inStaging, { enabled: true, targeting_rules: rules });
  await flag("read the history", "GET", `${inStaging}/history`);
  await flag("roll back", "POST", `${inStaging}/rollback`);
  await flag("roll back once more", "POST", `${inStaging}/rollback`);
  const otherState = `/${second.body.id}/environments/${staging}`;
  await flag("nothing to roll back to", "POST", `${otherState}/rollback`);
  await flag("delete a flag", "DELETE", `/${third.body.id}`);
  await flag("delete it again", "DELETE", `/${third.body.id}`);
  await flag("list flags", "GET", "");
  const page = await flag("list a page of flags", "GET", "?limit=1");
  await flag("list the next page", "GET", `?limit=1&cursor=${page.body.next_cursor}`);
  await flag("find a flag by its key", "GET", "?key=search");
  const read = await flag("read a flag", "GET", `/${ids.id}`);
  const tag = /^etag: (.*)$/im.exec(read.head)?.[1] ?? "";
  await flag("read it if it changed", "GET", `/${ids.id}`, undefined, { "If-None-Match": tag });
  const operators = await ask("operators", { as: "server", path: "/api/v1/operators" });
  const operatorsTag = /^etag: (.*)$/im.exec(operators.head)?.[1] ?? "";
  await ask("operators that did not change", {
    as: "server",
    path: "/api/v1/operators",
    headers: { "If-None-Match": operatorsTag },
  });
}

/** Without a list, whose fingerprints have a random key. */
async function useAudiences({ ask }: Asking, ids: Ids): Promise<void> {
  const audience = (title: string, method: string, path: string, body?: unknown) =>
    ask(title, { as: "server", method, path: `/api/v1/audiences${path}`, body });
  const match = [[{ attribute: "plan", operator: "equals", value: "beta" }]];
  await audience("create an audience", "POST", "", { key: ids.key, name: "Beta", match });
  await audience("an audience's key is taken", "POST", "", { key: ids.key, name: "Again" });
  await audience("change an audience", "PATCH", `/${ids.key}`, { description: "Testers." });
  await audience("read an audience", "GET", `/${ids.key}`);
  await audience("list audiences", "GET", "");
  await audience("read its history", "GET", `/${ids.key}/history`);
  await audience("preview a change", "POST", `/${ids.key}/preview`, { match });
  await audience("create an audience to delete", "POST", "", { key: "old", name: "Old" });
  await audience("delete an audience", "DELETE", "/old");
  // No list has a chunk with this name.
  ids.sha256 = "0".repeat(64);
}

async function useSchedules(
  { ask }: Asking,
  ids: Ids,
  { staging, url, keys }: { staging: string; url: string; keys: Keys },
): Promise<void> {
  const schedule = (title: string, method: string, of: string, body?: unknown, headers = {}) =>
    ask(title, {
      as: "server",
      method,
      path: `/api/v1/flags/${ids.id}/environments/${of}/schedule`,
      body,
      headers,
    });
  const here = ids.environmentId as string;
  await schedule("no schedule yet", "GET", here);
  await schedule("schedule a window", "POST", here, { enable_at: at2099, disable_at: at2100 });
  await schedule("replace it", "POST", here, { disable_at: at2100 });
  await schedule("read it", "GET", here);
  await schedule("schedule in the past", "POST", here, { enable_at: "2001-01-01T00:00:00Z" });
  await schedule("schedule to clear", "POST", staging, { enable_at: at2099 });
  await schedule("clear it", "DELETE", staging);
  await schedule("clear nothing", "DELETE", staging);
  const ifNone = { "If-None-Match": "*" };
  const times = { enable_at: at2099 };
  await schedule("schedule if none is pending", "POST", here, times, ifNone);
  await schedule("clear any pending one", "DELETE", staging, undefined, { "If-Match": "*" });
  await schedule("read a cleared one", "GET", staging);
  const soon = new Date(Date.now() + 1_500).toISOString();
  await schedule("schedule a change that comes due", "POST", staging, { disable_at: soon });
  const path = `/api/v1/flags/${ids.id}/environments/${staging}/schedule`;
  await eventually(
    async () => (await must(url + path, { key: keys.server as string })).status !== "pending",
    { because: "the scheduled change is applied" },
  );
  await schedule("read an applied one", "GET", staging);
  await ask("list schedules", { as: "server", path: "/api/v1/schedules" });
}

async function useChangeRequests({ ask }: Asking, ids: Ids, staging: string): Promise<void> {
  const requests = "/api/v1/change-requests";
  const asServer = (title: string, method: string, path: string, body?: unknown, headers = {}) =>
    ask(title, { as: "server", method, path, body, headers });
  const protect = (title: string, body: object) =>
    ask(title, {
      ...{ as: "operator", method: "PATCH", body },
      path: `/api/v1/projects/${ids.projectId}/environments/${staging}`,
    });
  const state = { kind: "state", flag_id: ids.id, environment_id: ids.environmentId };
  const opened = await asServer("open a change request", "POST", requests, {
    title: "A third of the users",
    changes: [{ ...state, patch: { rollout_percentage: 33 } }],
  });
  ids.requestId = opened.body.id;
  const one = `${requests}/${ids.requestId}`;
  await asServer("read it", "GET", one);
  await asServer("edit it", "PATCH", one, { reason: "The first third." });
  await asServer("list the change requests", "GET", `${requests}?status=open,approved&limit=1`);
  await asServer("open what is open", "POST", `${one}/open`);
  await asServer("withdraw it", "POST", `${one}/withdraw`);
  await asServer("withdraw it again", "POST", `${one}/withdraw`);
  await asServer("propose the current state", "POST", requests, {
    ...{ title: "Nothing", changes: [{ ...state, patch: {} }] },
  });
  await protect("protect an environment", { protected: { approvals: 1 } });
  const statePath = `/api/v1/flags/${ids.id}/environments/${staging}`;
  const write = { rollout_percentage: 12 };
  await asServer("change a protected environment", "PATCH", statePath, write);
  const prefer = { Prefer: "respond-async" };
  const asked = await asServer("request the change", "PATCH", statePath, write, prefer);
  const ofWrite = `${requests}/${asked.body.id}`;
  await asServer("apply it without approvals", "POST", `${ofWrite}/apply`);
  await asServer("approve it with a key", "POST", `${ofWrite}/approve`, { content_hash: "" });
  await protect("end the protection", { protected: null });
  await protect("end it with a reason", { protected: null, bypass_reason: "A test" });
  await asServer("apply a stale request", "POST", `${ofWrite}/apply`);
  await asServer("withdraw the request", "POST", `${ofWrite}/withdraw`);
}

async function useWebhooks(
  { ask }: Asking,
  ids: Ids,
  { keys, receiver, url }: { keys: Keys; receiver: Receiver; url: string },
): Promise<void> {
  const webhooks = `/api/v1/projects/${ids.projectId}/webhooks`;
  const hook = (title: string, method: string, path: string, body?: unknown, headers = {}) =>
    ask(title, { as: "server", method, path: webhooks + path, body, headers });
  const created = await hook("create a webhook", "POST", "", {
    name: "deployments",
    url: `${receiver.url}/hooks/deployments?token=1`,
    events: ["flag.created", "flag.updated", "flag.toggled", "flag_state.updated", "flag.deleted"],
    secret: "a secret of the customer",
  });
  ids.webhookId = created.body.id;
  await hook("a webhook's name is taken", "POST", "", {
    name: "deployments",
    url: receiver.url,
    events: ["flag.created"],
  });
  const other = await hook("create another webhook", "POST", "", {
    name: "chat",
    url: `${receiver.url}/chat`,
    events: ["flag.toggled"],
  });
  await hook("list webhooks", "GET", "");
  await hook("read one", "GET", `/${ids.webhookId}`);
  const ifSeventh = { "If-Match": '"7"' };
  await hook("change another version", "PATCH", `/${ids.webhookId}`, { enabled: false }, ifSeventh);
  await hook("change one", "PATCH", `/${other.body.id}`, { name: "talk", enabled: false });
  await hook("delete one", "DELETE", `/${other.body.id}`);
  await hook("test one", "POST", `/${ids.webhookId}/test`);

  const flags = `${url}/api/v1/flags`;
  const key = keys.server as string;
  type Delivery = { id: string; status: string };
  /** Makes a change with one event, and waits for its delivery, so that deliveries have a fixed order. */
  const change = async (method: string, path: string, body?: unknown) => {
    const sent = receiver.requests.length;
    const flag = await must(flags + path, { method, key, ...(body === undefined ? {} : { body }) });
    const newest = await eventually(
      async () => {
        const { deliveries } = await must(`${url}${webhooks}/${ids.webhookId}/deliveries`, { key });
        const [first] = deliveries as Delivery[];
        return receiver.requests.length > sent && first?.status === "delivered" ? first : undefined;
      },
      { because: "the event is delivered" },
    );
    return { flag, deliveryId: newest.id };
  };
  const { flag, deliveryId } = await change("POST", "", { key: "told", name: "Told" });
  ids.deliveryId = deliveryId;
  await change("PATCH", `/${flag.id}`, { name: "Told 2" });
  await change("PATCH", `/${flag.id}`, { enabled: true });
  await change("PATCH", `/${flag.id}`, { rollout_percentage: 10 });
  await change("DELETE", `/${flag.id}`);
  await hook("list deliveries", "GET", `/${ids.webhookId}/deliveries`);
  await hook("list a page", "GET", `/${ids.webhookId}/deliveries?limit=1&status=delivered`);
  await hook("read a delivery", "GET", `/${ids.webhookId}/deliveries/${ids.deliveryId}`);
  await hook("deliver again", "POST", `/${ids.webhookId}/deliveries/${ids.deliveryId}/redeliver`);
  await eventually(() => receiver.requests.length >= 7, { because: "it is delivered again" });
  await ask("usage", { as: "server", path: "/api/v1/usage" });
  await ask("usage by day", {
    as: "server",
    path: "/api/v1/usage/days?from=2020-01-31&to=2020-02-01",
  });
  await ask("flags by evaluations", { as: "server", path: "/api/v1/usage/flags?limit=2" });
  await ask("usage of a flag", { as: "server", path: `/api/v1/flags/${ids.id}/usage` });
}
