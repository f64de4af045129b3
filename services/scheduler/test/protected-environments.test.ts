import type { EnvironmentEntry } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { makeTenant, openScheduler } from "./scheduler-fixture.ts";

/** Schedules of protected environments, which management would refuse when they are due. */

const scheduler = await openScheduler();
afterAll(() => scheduler.close());
const replica = await scheduler.startReplica();

let version = 0;

/** Creates a flag in an environment with a protection. `protect` replaces the protection. */
async function flagIn(initial: EnvironmentEntry["protected"]) {
  const tenant = makeTenant();
  const { organizationId, projectId, environmentId } = tenant;
  const flag = tenant.flag();
  const protect = async (protection: EnvironmentEntry["protected"]) => {
    version += 1;
    await scheduler.bucket.put({
      address: { kind: "environment", organizationId, environmentId },
      value: {
        ...{ kind: "environment", organization_id: organizationId, project_id: projectId },
        ...{ environment_id: environmentId, name: "production" },
        ...(protection !== undefined && { protected: protection }),
        ...{ version, committed_at: new Date().toISOString() },
      },
    });
    await eventually(
      () =>
        replica.places.environment(environmentId) !== undefined &&
        (replica.places.findProtected(environmentId) === undefined) === (protection === undefined),
    );
  };
  await scheduler.bucket.put(...tenant.entries, flag.entry);
  await protect(initial);
  await eventually(() => replica.hasFlag(flag) && replica.hasKey(tenant.serverKey));
  const set = (body: object, headers: Record<string, string> = {}) =>
    replica.call(flag.path, { method: "POST", key: tenant.serverKey, body, headers });
  const read = () => replica.call(flag.path, { key: tenant.serverKey });
  return { set, read, protect };
}

const enable_at = "2099-01-01T00:00:00Z";
const disable_at = "2099-02-01T00:00:00Z";

const refused = {
  status: 409,
  body: {
    error: {
      code: "APPROVAL_001",
      message: expect.stringMatching(/^production is protected.*with \/apply_at instead\.$/),
    },
  },
};

describe("a schedule of a protected environment", () => {
  it.each([[{ enable_at }], [{ disable_at }], [{ enable_at, disable_at }]])(
    "is refused without an exception: %j",
    async (body) => {
      const { set, read } = await flagIn({ without_approval: ["rollback"] });
      expect(await set(body)).toMatchObject(refused);
      expect((await read()).status).toBe(404);
    },
  );

  it("is accepted with the exception `off` if it only turns the flag off", async () => {
    const { set, read } = await flagIn({ without_approval: ["off"] });
    expect(await set({ enable_at })).toMatchObject(refused);
    expect(await set({ enable_at, disable_at })).toMatchObject(refused);
    expect((await set({ enable_at: null, disable_at })).status).toBe(201);
    expect((await read()).body).toMatchObject({ enable_at: null, status: "pending" });
  });

  it("is accepted before the protection, repeated with its key, and not replaced", async () => {
    const { set, read, protect } = await flagIn(undefined);
    const once = { "idempotency-key": uuidv7() };
    const first = await set({ enable_at }, once);
    expect(first.status).toBe(201);
    await protect({ without_approval: [] });
    expect(await set({ enable_at }, once)).toMatchObject({ status: 201, body: first.body });
    expect(await set({ enable_at, disable_at })).toMatchObject(refused);
    expect((await read()).body).toEqual(first.body);
    await protect(undefined);
    expect((await set({ enable_at, disable_at })).status).toBe(201);
  });
});
