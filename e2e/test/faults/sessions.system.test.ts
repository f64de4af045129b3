import { type CallOptions, call, eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { signInByLink } from "../../src/system/sign-in.ts";
import { type System, startSystem } from "../../src/system/system.ts";
import { createTenant, must, operatorToken, type Tenant } from "../../src/system/tenancy.ts";

/**
 * Tests sessions and roles on the other services after all management processes were killed, and then PostgreSQL.
 */
const publicUrl = "http://localhost:8080";

describe("given sessions, and no management", () => {
  let system: System;
  let tenant: Tenant;
  let flagId: string;
  let editor: Record<string, string>;
  let viewer: Record<string, string>;

  beforeAll(async () => {
    const settings = { PUBLIC_URL: publicUrl };
    system = await startSystem({
      ...{ managements: 1, schedulers: 1, dispatchers: 1, meterings: 1, edges: 0 },
      postgres: "own",
      settings: () => ({
        ...{ management: settings, scheduler: settings },
        ...{ "webhook-dispatcher": settings, "usage-metering": settings },
      }),
    });
    const [management] = system.managements;
    const url = management?.url ?? "";
    tenant = await createTenant(url, { name: "Acme" });
    const flag = { key: "checkout", name: "Checkout" };
    const { id } = await must(`${url}/api/v1/flags`, {
      ...{ method: "POST", key: tenant.serverKey, body: flag },
    });
    flagId = id;
    [editor, viewer] = [await signIn(url, "editor"), await signIn(url, "viewer")];
    for (const headers of [editor, viewer]) await eventually(() => allRespond(headers, 200));
    // The scheduler receives flags by another stream than people.
    await eventually(async () => (await schedule("GET", viewer)).status === 404);
    await management?.kill();
  }, 120_000);
  afterAll(() => system?.close());

  /** Signs in a new user with a role in the project. */
  async function signIn(url: string, role: string): Promise<Record<string, string>> {
    const { organizationId, projectId, environmentId } = tenant;
    const operate = (path: string, body: object) =>
      must(`${url}/api/v1/organizations/${organizationId}/${path}`, {
        ...{ method: "POST", key: operatorToken, body },
      });
    const { id: userId } = await operate("users", { email: `${role}@example.com` });
    const scope = { project: projectId };
    await operate("grants", { subject: { user_id: userId }, role, scope });
    const headers = await signInByLink(url, { organizationId, userId, origin: publicUrl });
    return { ...headers, "halyard-environment": environmentId };
  }

  const schedule = (method: string, headers: Record<string, string>, body?: object) =>
    call(
      `${system.schedulers[0]?.url}/api/v1/flags/${flagId}/environments/${tenant.environmentId}/schedule`,
      { method, headers, body },
    );

  /** Returns the statuses of a read of each service, which needs its database unless the query is invalid. */
  async function statuses(headers: Record<string, string>, query = ""): Promise<number[]> {
    const urls = [
      `${system.schedulers[0]?.url}/api/v1/schedules`,
      `${system.dispatchers[0]?.url}/api/v1/projects/${tenant.projectId}/webhooks`,
      `${system.meterings[0]?.url}/api/v1/usage`,
    ];
    const options: CallOptions = { headers };
    const answers = await Promise.all(urls.map((url) => call(url + query, options)));
    return answers.map(({ status }) => status);
  }

  const allRespond = async (headers: Record<string, string>, expected: number) =>
    (await statuses(headers)).every((status) => status === expected);

  it("serves reads and writes of the other services, by role", async () => {
    const body = { enable_at: "2099-01-01T00:00:00Z" };
    expect(await statuses(viewer)).toEqual([200, 200, 200]);
    expect((await schedule("POST", viewer, body)).status).toBe(403);
    expect((await schedule("POST", editor, body)).status).toBe(201);
    expect((await schedule("GET", viewer)).status).toBe(200);
    const strange = { ...viewer, cookie: viewer.cookie?.replace(/.{4}$/, "AAAA") ?? "" };
    expect(await statuses(strange)).toEqual([401, 401, 401]);
  });

  it("verifies sessions and roles without PostgreSQL too, and reads again after its return", async () => {
    await system.postgres?.kill();
    expect(await statuses(viewer)).toEqual([503, 503, 503]);
    expect(await statuses(viewer, "?no_such_parameter=1")).toEqual([400, 400, 400]);
    expect((await schedule("DELETE", viewer)).status).toBe(403);
    const nobody = { "halyard-environment": tenant.environmentId };
    expect(await statuses(nobody)).toEqual([401, 401, 401]);
    await system.postgres?.start();
    await eventually(() => allRespond(viewer, 200), { because: "PostgreSQL has returned" });
  });
});
