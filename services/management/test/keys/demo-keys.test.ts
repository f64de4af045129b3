import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  call,
  createTestDatabase,
  eventually,
  type ServiceProcess,
  startNatsProxy,
  startServiceProcess,
  startTestNats,
} from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { operatorToken } from "../management-fixture.ts";

/** Tests management in production over a database with the demo keys of `npm start`. */
const program = fileURLToPath(new URL("../../src/remove-demo-keys.ts", import.meta.url));
const run = promisify(execFile);

const running: ServiceProcess[] = [];

const [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
afterAll(async () => {
  await Promise.all([database.drop(), nats.stop()]);
});
const management = await start("development");
const project = await createProject(management.url);
await management.stop();
afterEach(async () => {
  for (const process of running.splice(0)) await process.kill();
});

async function start(mode: string, postgresUrl = database.runtimeUrls.management) {
  const process = await startServiceProcess("management", {
    HALYARD_MODE: mode,
    HOST: "127.0.0.1",
    POSTGRES_URL: postgresUrl,
    NATS_URL: nats.url,
    OPERATOR_TOKEN: operatorToken,
  });
  running.push(process);
  return process;
}

/** Creates a project with keys of the demo user, whose address has other capitals, and a key of another user. */
async function createProject(url: string) {
  const create = async (path: string, body: unknown) => {
    const answer = await call(`${url}/api/v1${path}`, { method: "POST", key: operatorToken, body });
    expect(answer.status).toBe(201);
    return answer.body;
  };
  const organization = await create("/organizations", { name: "Demo", plan: "pro" });
  const users = `/organizations/${organization.id}/users`;
  const demo = await create(users, { email: "Demo@Example.com" });
  const ada = await create(users, { email: "ada@example.com" });
  await create(`/organizations/${organization.id}/grants`, {
    ...{ subject: { user_id: demo.id }, role: "owner" },
    scope: { organization: organization.id },
  });
  const { id, environments } = await create(`/organizations/${organization.id}/projects`, {
    name: "Demo",
  });
  const keys = `/projects/${id}/environments/${environments[0].id}/keys`;
  const key = (userId: string, kind: string) =>
    create(keys, { kind, name: "A key", user_id: userId });
  return {
    id,
    users,
    keys,
    demoUserId: demo.id,
    demoKeys: [await key(demo.id, "server"), await key(demo.id, "client")],
    key: await key(ada.id, "server"),
  };
}

async function removeDemoKeys(...given: string[]) {
  const { stdout } = await run(process.execPath, [program, ...given], {
    env: { PATH: process.env.PATH, POSTGRES_URL: database.runtimeUrls.management },
  });
  return stdout;
}

const statusWith = async (url: string, key: string) =>
  (await call(`${url}/api/v1/flags`, { key })).status;

describe("given a role that bypasses row-level security", () => {
  it("does not start, because deleted projects would be visible", async () => {
    const message = await start("development", database.adminUrl).then(
      String,
      (error: Error) => error.message,
    );
    expect(message).toContain("management ended with 2 before it listened");
    expect(message).toContain("Use the role management_service");
  });
});

describe("given a database with demo keys", () => {
  it("starts in development", async () => {
    const { url } = await start("development");
    await eventually(() => statusWith(url, project.demoKeys[0].key), {
      until: (status) => status === 200,
    });
  });

  it("does not start in production, and prints the command that removes the keys", async () => {
    const message = await start("production").then(String, (error: Error) => error.message);
    expect(message).toContain("management ended with 2 before it listened");
    expect(message).toContain("2 API keys and a role of the demo user demo@example.com");
    expect(message).toContain("npm run remove-demo-keys");
    expect(message).toContain("HALYARD_MODE=production npm start -- --remove-demo-keys");
    expect(message).toContain("src/remove-demo-keys.ts");
  });

  it("exits in production after a start without PostgreSQL, once it is available", async () => {
    let isOpen = false;
    const address = new URL(database.runtimeUrls.management);
    const proxy = await startNatsProxy(address.href, (client, server) => {
      if (isOpen) client.pipe(server);
      else client.destroy();
    });
    address.port = new URL(proxy.url).port;
    const production = await start("production", address.href);
    expect(await call(`${production.url}/readyz`)).toMatchObject({
      status: 503,
      body: { ready: false, demo_keys: "unknown" },
    });
    expect(await statusWith(production.url, project.demoKeys[0].key)).toBe(503);
    isOpen = true;
    expect(await production.exited).toBe(2);
    expect(production.log()).toContain("npm run remove-demo-keys");
    await proxy.close();
  });
});

describe("given the command that removes demo keys", () => {
  it("prints its usage", async () => {
    expect(await removeDemoKeys("--help")).toContain("npm run remove-demo-keys");
  });

  it("revokes the demo user's keys on every service, so that production starts", async () => {
    const development = await start("development");
    const printed = await removeDemoKeys();
    for (const { id } of project.demoKeys) expect(printed).toContain(`Revoked the demo key ${id}.`);
    expect(printed).toContain(`Withdrew the roles of the demo user ${project.demoUserId}.`);
    // The other process receives its keys only from the snapshot.
    await eventually(() => statusWith(development.url, project.demoKeys[0].key), {
      until: (status) => status === 401,
    });
    const production = await start("production");
    await eventually(() => statusWith(production.url, project.key.key), {
      until: (status) => status === 200,
    });
    expect(await statusWith(production.url, project.demoKeys[0].key)).toBe(401);
    const { body } = await call(`${production.url}/api/v1/projects/${project.id}/changes`, {
      key: operatorToken,
    });
    const revoked = body.changes.filter(
      ({ action }: { action: string }) => action === "key_revoked",
    );
    expect(revoked).toHaveLength(project.demoKeys.length);
    expect(await call(`${production.url}/readyz`)).toMatchObject({
      status: 200,
      body: { demo_keys: "checked" },
    });
  });

  it("is not needed again, because production rejects new demo users and keys for them", async () => {
    const { url } = await start("production");
    const post = (path: string, body: unknown) =>
      call(`${url}/api/v1${path}`, { method: "POST", key: operatorToken, body });
    const rejected = {
      status: 400,
      body: { error: { code: "VALIDATION_001", message: expect.stringContaining("demo user") } },
    };
    expect(await post(project.users, { email: "DEMO@example.com" })).toMatchObject(rejected);
    const key = { kind: "server", name: "A key", user_id: project.demoUserId };
    expect(await post(project.keys, key)).toMatchObject(rejected);
    expect(await post(project.users, { email: "grace@example.com" })).toMatchObject({
      status: 201,
    });
  });

  it("changes nothing the second time", async () => {
    expect(await removeDemoKeys()).toBe("The database contains no demo keys.\n");
  });
});
