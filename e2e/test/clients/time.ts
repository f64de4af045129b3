import {
  call,
  type EventStream,
  eventually,
  openEventStream,
  type ServiceProcess,
} from "@halyard/testing";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { ClientSystem } from "../../src/system/client-system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";
import { type CreatedFlag, createFlags } from "../../src/traffic/changes.ts";

/** Time until a scheduled change is due. */
const soonMs = 3_000;

/** Long enough to cancel a change before it is due, even on a busy machine. */
const inTimeMs = 7_000;

export function describeTime(given: () => ClientSystem): void {
  let gateway: ServiceProcess;
  let tenant: Tenant;
  const streams: EventStream[] = [];

  beforeAll(async () => {
    ({ gateway } = given());
    tenant = await createTenant(gateway.url, { name: "Time" });
  });
  afterAll(() => {
    for (const stream of streams) stream.close();
  });

  const api = (path: string) => `${gateway.url}/api/v1/${path}`;
  const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();
  const at = (flag: CreatedFlag, part: string) =>
    api(`flags/${flag.id}/environments/${tenant.environmentId}/${part}`);
  const ask = (url: string) => must(url, { key: tenant.serverKey });
  const schedule = (flag: CreatedFlag, body: object) =>
    must(at(flag, "schedule"), { method: "POST", key: tenant.serverKey, body });

  async function createFlag(key: string): Promise<CreatedFlag> {
    const [flag] = await createFlags(gateway.url, tenant.serverKey, [key]);
    if (flag === undefined) throw new Error("a flag");
    return flag;
  }

  async function ended(flag: CreatedFlag) {
    return eventually(async () => {
      const body = await ask(at(flag, "schedule"));
      return body.status !== "pending" && body;
    });
  }

  it("switches a flag on and off at the given times, attributed to the user who scheduled it", async () => {
    const flag = await createFlag("window");
    const stream = await openEventStream(api("sdk/stream"), {
      authorization: `Bearer ${tenant.clientKey}`,
    });
    streams.push(stream);
    const enable_at = inMs(soonMs);
    const disable_at = inMs(soonMs + 600);

    await schedule(flag, { enable_at, disable_at });
    const done = await ended(flag);

    expect(done).toMatchObject({
      status: "applied",
      changes: [
        { action: "enable", at: enable_at, state: "applied" },
        { action: "disable", at: disable_at, state: "applied" },
      ],
    });
    for (const { at: due, applied_at, lateness_ms } of done.changes) {
      expect(lateness_ms).toBeGreaterThanOrEqual(0);
      expect(Date.parse(applied_at)).toBeGreaterThanOrEqual(Date.parse(due));
    }
    const { history } = await ask(at(flag, "history"));
    expect(
      history.map(({ enabled, change_type, changed_by }: Record<string, unknown>) => [
        enabled,
        change_type,
        changed_by,
      ]),
    ).toEqual([
      [false, "scheduled", tenant.userId],
      [true, "scheduled", tenant.userId],
      [false, "manual", tenant.userId],
    ]);
    const sent = () =>
      stream.events.flatMap(({ event, data }) => {
        const value = (data as { flags?: Record<string, boolean> }).flags?.window;
        return event === "flags" && value !== undefined ? [value] : [];
      });
    await eventually(() => sent().slice(-2).join() === "true,false", {
      because: "the open stream has sent both",
    });
  });

  it("does not apply a cleared or replaced change", async () => {
    const [cleared, replaced, later] = await Promise.all(
      ["cleared", "replaced", "later"].map(createFlag),
    );
    if (cleared === undefined || replaced === undefined || later === undefined) throw new Error();
    await schedule(cleared, { enable_at: inMs(inTimeMs) });
    await schedule(replaced, { enable_at: inMs(inTimeMs) });
    await schedule(later, { enable_at: inMs(inTimeMs + 300) });

    expect(
      (await call(at(cleared, "schedule"), { method: "DELETE", key: tenant.serverKey })).status,
    ).toBe(204);
    await schedule(replaced, { enable_at: "2099-01-01T00:00:00Z" });

    // This change is due after the others, so their time has passed.
    expect((await ended(later)).status).toBe("applied");
    expect((await ask(at(cleared, "schedule"))).status).toBe("cancelled");
    expect((await ask(at(replaced, "schedule"))).status).toBe("pending");
    for (const flag of [cleared, replaced])
      expect((await ask(at(flag, "history"))).history).toHaveLength(1);
  });

  it("cancels the scheduled change of a deleted flag", async () => {
    const flag = await createFlag("deleted");
    const { id } = await schedule(flag, { enable_at: "2099-01-01T00:00:00Z" });

    await call(api(`flags/${flag.id}`), { method: "DELETE", key: tenant.serverKey });

    await eventually(async () => {
      const { schedules } = await ask(api(`schedules?flag_id=${flag.id}`));
      const [found] = schedules as { id: string; status: string }[];
      return found?.id === id && found?.status === "cancelled";
    });
    expect((await call(at(flag, "schedule"), { key: tenant.serverKey })).status).toBe(404);
  });

  it("reverts a scheduled change by rollback, which SDKs receive", async () => {
    const flag = await createFlag("rolled-back");
    await schedule(flag, { enable_at: inMs(soonMs) });
    await ended(flag);

    const answer = await must(at(flag, "rollback"), { method: "POST", key: tenant.serverKey });

    expect(answer).toMatchObject({ enabled: false, rollout_percentage: 100 });
    const { history } = await ask(at(flag, "history"));
    expect(history.map((entry: { change_type: string }) => entry.change_type)).toEqual([
      "rollback",
      "scheduled",
      "manual",
    ]);
    expect(answer.rolled_back_to).toBe(history[2].changed_at);
    await eventually(async () => {
      const { body } = await call(api("sdk/flags"), { key: tenant.clientKey });
      return body.flags["rolled-back"] === false;
    });
  });
}
