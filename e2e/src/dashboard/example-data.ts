import { randomUUID } from "node:crypto";
import type { Demo } from "../system/launched.ts";

/** A project that looks like one in use, for screenshots. */
type Example = { organizationId: string; serverKey: string; remove(): Promise<void> };

type Json = Record<string, unknown>;

/** Creates an organization with flags, rules, changes by two people, schedules and a webhook. */
export async function createExample(demo: Demo): Promise<Example> {
  const send = async (method: string, path: string, key: string, body?: Json) => {
    const response = await fetch(`${demo.base_url}/api/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === "" ? {} : JSON.parse(text)) as Json & { id: string };
  };
  const operate = (path: string, body: Json) => send("POST", path, demo.operator_token, body);

  const organization = await operate("organizations", { name: "Acme", plan: "growth" });
  const project = await operate(`organizations/${organization.id}/projects`, { name: "Web shop" });
  const environments = project.environments as { id: string; name: string }[];
  const environment = (name: string) => environments.find((each) => each.name === name)?.id ?? "";
  const createUser = (email: string, name: string) =>
    operate(`organizations/${organization.id}/users`, { email, name });
  const issueKey = async (kind: "client" | "server", name: string, user: { id: string }) => {
    const keys = `projects/${project.id}/environments/${environment("production")}/keys`;
    return (await operate(keys, { kind, name, user_id: user.id })).key as string;
  };
  const adaUser = await createUser("ada@acme.example", "Ada");
  const ada = await issueKey("server", "Ada's key", adaUser);
  const graceUser = await createUser("grace@acme.example", "Grace");
  const grace = await issueKey("server", "Grace's key", graceUser);
  const website = await issueKey("client", "Website", adaUser);

  const ids = new Map<string, string>();
  for (const flag of flags) {
    const { id } = await send("POST", "flags", ada, flag);
    ids.set(flag.key, id);
  }
  const change = (key: string, flag: string, where: string, body: Json) =>
    send("PATCH", `flags/${ids.get(flag)}/environments/${environment(where)}`, key, body);
  for (const { key } of flags) await change(ada, key, "development", { enabled: true });
  await change(grace, "new-checkout", "staging", { enabled: true });
  await change(grace, "new-checkout", "production", { rollout_percentage: 25 });
  await change(ada, "new-checkout", "production", { enabled: true });
  await change(grace, "recommendations-v3", "staging", { enabled: true, rollout_percentage: 50 });
  await change(ada, "stop-payments", "production", { enabled: false });
  await scheduleSome(send, { key: grace, ids, environment });
  for (let count = 0; count < requests; count += 1) await send("GET", "sdk/flags", website);
  await send("POST", `projects/${project.id}/webhooks`, ada, {
    name: "Deployments channel",
    url: "http://127.0.0.1:4999/hooks/flags",
    events: ["flag.toggled", "flag_state.updated"],
    secret: randomUUID(),
  });
  return {
    organizationId: organization.id,
    serverKey: ada,
    async remove() {
      const path = `organizations/${organization.id}?confirm=${organization.id}`;
      await send("DELETE", path, demo.operator_token);
    },
  };
}

type Send = (method: string, path: string, key: string, body?: Json) => Promise<Json>;

const hourMs = 3_600_000;
/** Requests of an application, so that the pages about usage have figures. */
const requests = 300;

async function scheduleSome(
  send: Send,
  given: {
    key: string;
    ids: ReadonlyMap<string, string>;
    environment: (name: string) => string;
  },
): Promise<void> {
  const inHours = (hours: number) => new Date(Date.now() + hours * hourMs).toISOString();
  const schedule = (flag: string, where: string, body: Json) => {
    const path = `flags/${given.ids.get(flag)}/environments/${given.environment(where)}/schedule`;
    return send("POST", path, given.key, body);
  };
  await schedule("black-friday-banner", "production", {
    enable_at: inHours(90),
    disable_at: inHours(186),
  });
  await schedule("recommendations-v3", "production", { enable_at: inHours(20) });
}

const rule = (name: string, conditions: Json[], more: Json = {}): Json => ({
  name,
  conditions,
  ...more,
});

/** Flags of a web shop. Their states are those of production. */
const flags: readonly (Json & { key: string })[] = [
  {
    key: "new-checkout",
    name: "Checkout on one page",
    description: "Replaces the three steps of the checkout with a single page.",
    targeting_rules: [
      rule("Staff", [{ attribute: "email", operator: "ends_with", value: "@acme.example" }], {
        rollout_percentage: 100,
      }),
      rule("German-speaking countries", [
        { attribute: "country", operator: "in", value: ["DE", "AT", "CH"] },
        { attribute: "app_version", operator: "semver_gte", value: "4.2.0" },
      ]),
    ],
  },
  { key: "recommendations-v3", name: "Recommendations, third model", type: "experiment" },
  { key: "black-friday-banner", name: "Banner for Black Friday" },
  { key: "stop-payments", name: "Stop all payments", type: "kill_switch", enabled: true },
  {
    key: "bulk-orders",
    name: "Orders by spreadsheet",
    type: "permission",
    enabled: true,
    targeting_rules: [
      rule("Business customers", [{ attribute: "plan", operator: "equals", value: "business" }]),
    ],
  },
  { key: "image-cache.short", name: "Cache images for a minute", type: "operational" },
  { key: "guest-checkout", name: "Checkout without an account", enabled: true },
  { key: "search-typo-tolerance", name: "Search that tolerates typing errors" },
];
