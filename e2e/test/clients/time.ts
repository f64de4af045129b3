import { eventually, openEventStream } from "@halyard/testing";
import { expect, it } from "@jest/globals";
import type { ClientSystem } from "../../src/system/client-system.ts";
import { createTenant, must } from "../../src/system/tenancy.ts";
import { createFlags } from "../../src/traffic/changes.ts";

/** Time until a scheduled change is due. */
const soonMs = 3_000;

export function describeTime({ gateway }: ClientSystem): void {
  it("switches a flag on and off at the given times, attributed to the user who scheduled it", async () => {
    const tenant = await createTenant(gateway.url, { name: "Time" });
    const key = tenant.serverKey;
    const [flag] = await createFlags(gateway.url, key, ["window"]);
    const state = `${gateway.url}/api/v1/flags/${flag?.id}/environments/${tenant.environmentId}`;
    const stream = await openEventStream(`${gateway.url}/api/v1/sdk/stream`, {
      authorization: `Bearer ${tenant.clientKey}`,
    });
    const [enable_at, disable_at] = [soonMs, soonMs + 600].map((ms) =>
      new Date(Date.now() + ms).toISOString(),
    );

    await must(`${state}/schedule`, { method: "POST", key, body: { enable_at, disable_at } });
    const done = await eventually(async () => {
      const body = await must(`${state}/schedule`, { key });
      return body.status !== "pending" && body;
    });

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
    const { history } = await must(`${state}/history`, { key });
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
    stream.close();
  });

  it("cancels the schedule of a deleted flag", async () => {
    const tenant = await createTenant(gateway.url, { name: "Time" });
    const key = tenant.serverKey;
    const [flag] = await createFlags(gateway.url, key, ["deleted"]);
    const path = `${gateway.url}/api/v1/flags/${flag?.id}`;
    const schedule = `${path}/environments/${tenant.environmentId}/schedule`;
    const body = { enable_at: "2099-01-01T00:00:00Z" };
    const { id } = await must(schedule, { method: "POST", key, body });
    await must(path, { method: "DELETE", key });
    await eventually(async () => {
      const { schedules } = await must(`${gateway.url}/api/v1/schedules?flag_id=${flag?.id}`, {
        key,
      });
      return schedules[0]?.id === id && schedules[0].status === "cancelled";
    });
  });
}
