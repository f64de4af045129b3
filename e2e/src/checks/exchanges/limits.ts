import { eventually } from "@halyard/testing";
import { createTenant, must } from "../../system/tenancy.ts";
import type { Keys, Transcript } from "./transcript.ts";

/** The plan of the tenant that reaches every limit. */
export const tinyPlan = { requests_per_month: 5, sse_connections: 0, projects: 1 };

/** Records how clients experience the limits of a plan: of projects, requests and streams. */
export async function meetLimits(
  { ask, group }: Transcript,
  { url, keys }: { url: string; keys: Keys },
): Promise<void> {
  const tenant = await createTenant(url, { name: "Tiny", plan: "tiny" });
  keys.tiny = tenant.clientKey;
  keys["tiny server"] = tenant.serverKey;
  const projects = `/api/v1/organizations/${tenant.organizationId}/projects`;
  await ask("a project more than the plan allows", {
    as: "operator",
    method: "POST",
    path: projects,
    body: { name: "Second" },
  });
  await eventually(
    async () => {
      const answer = await fetch(`${url}/api/v1/sdk/flags`, {
        headers: { authorization: `Bearer ${tenant.clientKey}` },
      });
      await answer.text();
      return answer.status === 429;
    },
    { because: "the requests of the month are used" },
  );
  await group("requests beyond the plan", [
    { as: "tiny", path: "/api/v1/sdk/flags" },
    { as: "tiny", path: "/api/v1/sdk/evaluate?key=checkout" },
    { as: "tiny", path: "/api/v1/sdk/stream" },
    {
      as: "tiny",
      method: "POST",
      path: "/ofrep/v1/evaluate/flags",
      body: { context: { targetingKey: "user-1" } },
    },
    { as: "tiny server", path: "/api/v1/flags" },
    { as: "tiny server", path: "/api/v1/usage" },
  ]);
  await must(`${url}/api/v1/organizations/${tenant.organizationId}`, {
    method: "PATCH",
    key: keys.operator as string,
    body: { plan: "no streams" },
  });
  await eventually(
    async () => {
      const answer = await fetch(`${url}/api/v1/sdk/flags`, {
        headers: { authorization: `Bearer ${tenant.clientKey}` },
      });
      await answer.text();
      return answer.status === 200;
    },
    { because: "the larger plan has arrived" },
  );
  await group("streams beyond the plan", [{ as: "tiny", path: "/api/v1/sdk/stream" }]);
}
