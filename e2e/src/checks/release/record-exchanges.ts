import type { Demo } from "../../system/launched.ts";
import { must } from "../../system/tenancy.ts";
import type { Filled } from "./fill-release.ts";
import type { Exchange } from "./release-fixture.ts";

const contexts = [
  {},
  { id: "user-1", company: "contoso" },
  { id: "user-2", country: "DE", app_version: "2.10.0" },
  { id: "user-3", email: "ada@example.com" },
  { id: "user-4", plan: "free", age: 40 },
  { id: "user-5", plan: "team", age: 18 },
];

/**
 * Reads everything that the release serves, and records the responses. The order matters: a request with an API key
 * changes that key's `last_used_at`, and an SDK request changes a flag's `last_evaluated_at`.
 */
export async function recordExchanges(demo: Demo, filled: Filled): Promise<Exchange[]> {
  const exchanges: Exchange[] = [];
  const record = async (as: string, path: string, body?: unknown) => {
    const answer = await send(demo.base_url, filled.keys, { as, path, body });
    exchanges.push({ as, path, ...(body === undefined ? {} : { body }), answer });
    return answer;
  };
  const organization = `/api/v1/organizations/${demo.organization_id}`;
  const project = `/api/v1/projects/${demo.project_id}`;
  const environments = Object.values(filled.environments);
  for (const path of ["", "/users", "/projects", "/grants"])
    await record("operator", organization + path);
  for (const id of environments) await record("operator", `${project}/environments/${id}/keys`);
  await record("operator", `${project}/changes?limit=1000`);

  for (const as of ["server", "staging"]) await record(as, "/api/v1/flags");
  for (const path of ["audiences", "audiences/beta", "audiences/beta/history", "change-requests"])
    await record("server", `/api/v1/${path}`);
  const { flags } = (await record("server", "/api/v1/flags?limit=1000")) as {
    flags: { id: string }[];
  };
  for (const flag of flags)
    for (const environment of environments) {
      const path = `/api/v1/flags/${flag.id}/environments/${environment}`;
      await record("server", path);
      await record("server", `${path}/history`);
    }
  const { schedules } = (await record("server", "/api/v1/schedules")) as {
    schedules: { flag_id: string; environment_id: string }[];
  };
  for (const { flag_id, environment_id } of schedules)
    await record("server", `/api/v1/flags/${flag_id}/environments/${environment_id}/schedule`);
  await record("server", `${project}/webhooks`);
  for (const { path } of Object.values(filled.webhooks)) {
    const { deliveries } = (await record("server", `${path}/deliveries`)) as {
      deliveries: { id: string }[];
    };
    for (const { id } of deliveries) await record("server", `${path}/deliveries/${id}`);
  }

  for (const as of ["web", "staging", "ending"])
    for (const context of contexts)
      for (const members of ["flags", "values"])
        await record(as, `/api/v1/sdk/${members}`, context);
  for (const flag of ["checkout", "new-search", "beta-program", "dark-mode", "delivery-fee"])
    for (const user of contexts)
      await record("client", `/api/v1/sdk/evaluate?key=${flag}`, { user });
  return exchanges;
}

export function send(
  baseUrl: string,
  keys: Record<string, string>,
  { as, path, body }: Pick<Exchange, "as" | "path" | "body">,
): Promise<unknown> {
  return must(`${baseUrl}${path}`, {
    ...(body === undefined ? {} : { method: "POST", body }),
    key: keys[as] ?? "",
  });
}
