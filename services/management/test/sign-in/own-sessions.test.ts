import {
  createTestDatabase,
  eventually,
  natsServerBinary,
  startRestartableNats,
} from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { operatorToken } from "../management-fixture.ts";
import { openPeople } from "./person-fixture.ts";

/** Tests the routes of a person's own session, and of all sessions of the person. */

const people = await openPeople();
afterAll(() => people.close());

describe("reading the session", () => {
  it("lists only what the person may see", async () => {
    const { browser, organizationId, userId } = await people.member("viewer");
    const hidden = await people.organization();
    const path = `/api/v1/organizations/${organizationId}/projects`;
    const project = (await people.operator(path, { name: "Web" })).body;
    const { body } = await browser.get("/api/v1/session");
    expect(body.organizations).toMatchObject([
      {
        ...{ id: organizationId, user_id: userId, role: "viewer" },
        projects: [{ id: project.id, name: "Web", role: "viewer" }],
      },
    ]);
    expect(JSON.stringify(body)).not.toContain(hidden.id);
  });

  it("lists a role in one environment, and viewer in the rest of its project", async () => {
    const { organizationId, userId, project } = await people.scope();
    const environments = `/api/v1/projects/${project.id}/environments`;
    const granted = (await people.operator(environments, { name: "granted" })).body;
    await people.operator(`/api/v1/organizations/${organizationId}/grants`, {
      ...{ subject: { user_id: userId }, role: "editor" },
      scope: { project: project.id, environments: [granted.id] },
    });
    const browser = people.browser();
    const code = await people.link(organizationId, userId);
    await browser.send("/auth/link/verify", { body: { code } });
    const { body } = await browser.get("/api/v1/session");
    const [{ role, projects }] = body.organizations;
    expect([role, projects[0].role]).toEqual([null, "viewer"]);
    const roles = projects[0].environments.map((one: { id: string; role: string }) =>
      one.id === granted.id ? `granted: ${one.role}` : one.role,
    );
    expect(new Set(roles)).toEqual(new Set(["granted: editor", "viewer"]));
  });

  it("needs a session", async () => {
    const answer = await people.browser().get("/api/v1/session");
    expect([answer.status, answer.body.error.code]).toEqual([401, "AUTH_001"]);
  });

  it("is not for tokens", async () => {
    const answer = await people.call("/api/v1/session", { key: operatorToken });
    expect([answer.status, answer.body.error.code]).toEqual([403, "AUTH_002"]);
  });
});

describe("the ways of signing in", () => {
  it("limit an address that sends made-up sessions, and no other", async () => {
    const limited = await openPeople({ keyRate: { requestsPerSecond: 0.01, burst: 2 } });
    const { port } = limited.publicUrl;
    const made = `halyard-session-${port}=${uuidv7()}.${"s".repeat(43)}`;
    const ask = async (address: string, cookie = "") => {
      const headers = { "x-forwarded-for": address, cookie };
      return (await limited.call("/auth/methods", { headers })).status;
    };
    const statuses = [];
    for (let count = 0; count < 3; count += 1) statuses.push(await ask("192.0.2.1", made));
    expect(statuses).toEqual([200, 200, 429]);
    expect([await ask("192.0.2.1"), await ask("192.0.2.2", made)]).toEqual([200, 200]);
    await limited.close();
  });
});

describe("ending sessions", () => {
  it("ends one", async () => {
    const { browser, passkey } = await people.member();
    const other = people.browser();
    await other.sign("sign_in", passkey);
    const { sessions } = (await browser.get("/api/v1/sessions")).body;
    const { id } = sessions.find(({ current }: { current: boolean }) => !current);
    await browser.send(`/api/v1/sessions?id=${id}`, { method: "DELETE" });
    expect((await other.get("/api/v1/session")).status).toBe(401);
    expect((await browser.get("/api/v1/session")).status).toBe(200);
  });

  it("ends all of the person", async () => {
    const { browser, passkey } = await people.member();
    const other = people.browser();
    await other.sign("sign_in", passkey);
    expect((await browser.send("/api/v1/sessions", { method: "DELETE" })).status).toBe(204);
    for (const ended of [browser, other])
      expect((await ended.get("/api/v1/session")).status).toBe(401);
  });

  it("leaves sessions of other persons", async () => {
    const [one, other] = [await people.member(), await people.member()];
    const { sessions } = (await other.browser.get("/api/v1/sessions")).body;
    await one.browser.send(`/api/v1/sessions?id=${sessions[0].id}`, { method: "DELETE" });
    expect((await other.browser.get("/api/v1/session")).status).toBe(200);
  });

  it("is rejected from another site", async () => {
    const { browser } = await people.member();
    const sent = { method: "DELETE", origin: "https://example.com" };
    expect((await browser.send("/api/v1/sessions", sent)).status).toBe(403);
  });
});

describe("while NATS is away", () => {
  it("signs out, by the session in the database", async () => {
    const cut = await openPeople();
    const { browser } = await cut.member();
    const [cookie] = [...browser.cookies].map(([name, value]) => `${name}=${value}`);
    await cut.backends.nats.stop();
    await eventually(() => !cut.peopleAreCurrent(), { because: "management notices" });
    expect((await browser.send("/auth/sign-out")).status).toBe(200);
    expect(await cut.findSession(cookie ?? "")).toBeUndefined();
    await cut.close();
  });
});

describe("while NATS hangs", () => {
  it("opens the organization of a person who has just joined", async () => {
    const nats = await startRestartableNats(await natsServerBinary());
    const hung = await openPeople({ over: { database: await createTestDatabase(), nats } });
    const { id: organizationId } = await hung.organization();
    const { code } = await hung.invite(organizationId, "ada@example.com", "editor");
    nats.signal("SIGSTOP");
    const browser = hung.browser();
    await browser.register(code);
    const { status, body } = await browser.get("/api/v1/session");
    expect(hung.peopleAreCurrent()).toBe(true);
    expect(status).toBe(200);
    expect(body.organizations).toMatchObject([{ id: organizationId, role: "editor" }]);
    nats.signal("SIGCONT");
    await hung.close();
  });
});

describe("passkeys", () => {
  it("are removed by their own person only", async () => {
    const [one, other] = [await people.member(), await people.member()];
    const path = `/api/v1/passkeys/${other.passkey.id}`;
    expect((await one.browser.send(path, { method: "DELETE" })).status).toBe(404);
    expect((await other.browser.get("/api/v1/passkeys")).body.passkeys).toHaveLength(1);
  });
});
