import { routes } from "@halyard/contracts";
import { afterAll, describe, expect, it } from "@jest/globals";
import { expressionOf, routeTable, type Target } from "../src/route-table.ts";
import { givenGateway, givenUpstream, type Upstream } from "./given-gateway.ts";

/** Tests that every route of the contract reaches its service, by the table and over HTTP. */
const upstreams: Upstream[] = [];

const play = async (name: Target) => {
  const upstream = await givenUpstream((_incoming, response) => response.end(name));
  upstreams.push(upstream);
  return [upstream.origin];
};
const gateway = await givenGateway({
  management: await play("management"),
  edges: await play("sdk-edge"),
  schedulers: await play("scheduler"),
  dispatchers: await play("webhook-dispatcher"),
  meterings: await play("usage-metering"),
  dashboards: await play("dashboard"),
});
afterAll(async () => {
  await gateway.stop();
  for (const upstream of upstreams) await upstream.close();
});

const cases = routes.flatMap(({ method, alsoMethod, path, service }) =>
  [method, alsoMethod].flatMap((each) =>
    each === undefined ? [] : [[each, path, service] as const],
  ),
);

/** Returns the service of a path by the first matching entry, as an ingress with regular expressions finds it. */
function serviceOf(path: string): Target | undefined {
  return routeTable.find(({ pattern }) => new RegExp(expressionOf(pattern)).test(path))?.target;
}

describe("given the routes of the contract", () => {
  it.each(cases)("sends %s %s to %s", async (method, path, service) => {
    const concrete = path.replaceAll(/:\w+/g, "018f0000-0000-7000-8000-000000000001");
    expect(serviceOf(concrete)).toBe(service);
    const answered = await fetch(gateway.url + concrete, { method });
    expect(await answered.text()).toBe(service);
  });

  it.each([
    ["/api/v1/flags/a/environments/b/schedule", "scheduler"],
    ["/api/v1/flags/a/environments/b/schedule?at=now", "scheduler"],
    ["/api/v1/flags/a/environments/b/schedule/", "management"],
    ["/api/v1/flags/a/environments/b/schedule/changes", "management"],
    ["/api/v1/flags/a/environments/b/schedules", "management"],
    ["/api/v1/flags/a/environments/b/history", "management"],
    ["/api/v1/flags/a/b/environments/c/schedule", "management"],
    ["/api/v1/flags/a/schedule", "management"],
    ["/api/v1/schedules", "scheduler"],
    ["/api/v1/schedules/a", "management"],
    ["/api/v1/schedulesx", "management"],
    ["/api/v1/projects/a/webhooks", "webhook-dispatcher"],
    ["/api/v1/projects/a/webhooks?limit=1", "webhook-dispatcher"],
    ["/api/v1/projects/a/webhooks/", "webhook-dispatcher"],
    ["/api/v1/projects/a/webhooks/b/deliveries/c/redeliver", "webhook-dispatcher"],
    ["/api/v1/projects/a/webhooks/b/nothing/of/the/kind", "webhook-dispatcher"],
    ["/api/v1/projects/a/webhooks/webhooks", "webhook-dispatcher"],
    ["/api/v1/projects/webhooks/webhooks", "webhook-dispatcher"],
    ["/api/v1/projects/a/webhooksx", "management"],
    ["/api/v1/projects/a/webhook", "management"],
    ["/api/v1/projects/webhooks", "management"],
    ["/api/v1/projects/a/b/webhooks", "management"],
    ["/api/v1/projects/a/environments", "management"],
    ["/api/v1/projects/a/environments/webhooks/c", "management"],
    ["/api/v1/organizations/a/webhooks", "management"],
    ["/api/v1/webhooks", "management"],
    ["/api/v1/usage", "usage-metering"],
    ["/api/v1/usage?month=now", "usage-metering"],
    ["/api/v1/usage/", "management"],
    ["/api/v1/usage/days?from=2027-01-01", "usage-metering"],
    ["/api/v1/usage/days/", "management"],
    ["/api/v1/usage/flags?hours=48", "usage-metering"],
    ["/api/v1/usage/a", "management"],
    ["/api/v1/usages", "management"],
    ["/api/v1/flags/a/usage", "usage-metering"],
    ["/api/v1/flags/a/usage?hours=2", "usage-metering"],
    ["/api/v1/flags/usage/usage", "usage-metering"],
    ["/api/v1/flags/usage", "management"],
    ["/api/v1/flags/a/usage/", "management"],
    ["/api/v1/flags/a/usage/b", "management"],
    ["/api/v1/flags/a/b/usage", "management"],
    ["/api/v1/projects/a/usage", "management"],
    ["/api/v1/projects/a/environments/b/readers", "usage-metering"],
    ["/api/v1/projects/a/environments/b/readers/", "management"],
    ["/api/v1/projects/a/environments/readers", "management"],
    ["/api/v1/projects/a/environments/b/keys/readers", "management"],
    ["/auth/oidc/callback?code=a&state=b", "management"],
    ["/auth/sign-out", "management"],
    ["/authors", "dashboard"],
    ["/sign-in", "dashboard"],
    ["/", "dashboard"],
    ["/docs", "dashboard"],
    ["/openapi.json", "dashboard"],
    ["/api/v2/flags", "dashboard"],
    ["/flags/new-checkout?tab=rules", "dashboard"],
  ])("sends %s to %s, both by the table and over HTTP", async (path, service) => {
    expect(serviceOf(path.replace(/\?.*/, ""))).toBe(service);
    for (const method of ["GET", "POST", "DELETE", "OPTIONS"])
      expect(await (await fetch(gateway.url + path, { method })).text()).toBe(service);
  });
});
