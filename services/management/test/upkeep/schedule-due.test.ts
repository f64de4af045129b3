import { randomUUID } from "node:crypto";
import { type ScheduleDue, type SigningService, scheduleStream } from "@halyard/contracts";
import { testMessageSigner } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { flagsOf } from "../flag-fixture.ts";
import { openManagement, operatorToken, seedProject } from "../management-fixture.ts";
import { dueChange, openScheduler } from "../schedule-due-fixture.ts";

/** Tests how management makes due changes. `schedule-due-faults.test.ts` covers failures. */

const management = await openManagement();
const project = await seedProject(management);
const flags = flagsOf(management, project);
const scheduler = await openScheduler(management);
afterAll(async () => {
  await scheduler.close();
  await management.close();
});

async function read(flag: { id: string }) {
  const answer = await management.call(`/api/v1/flags/${flag.id}`, { key: project.serverKey });
  return answer.body;
}

describe("given a due change", () => {
  it("makes it with one history entry and one event, on behalf of the schedule's user", async () => {
    const flag = await flags.createFlag({ rollout_percentage: 30 });
    const due = dueChange(project, flag);
    await scheduler.send(due);
    const resolved = await scheduler.outcomeOf(due);

    const changed = await read(flag);
    expect(changed).toMatchObject({ enabled: true, version: 2 });
    expect(resolved).toEqual({
      id: due.id,
      schedule_id: due.schedule_id,
      outcome: "applied",
      applied_at: changed.updated_at,
      reason: null,
    });
    expect(await flags.historyOf(flag.id)).toMatchObject([
      { enabled: false, change_type: "manual" },
      {
        enabled: true,
        rollout_percentage: 30,
        targeting_rules: [],
        change_type: "scheduled",
        changed_by: project.userId,
      },
    ]);
    expect(await flags.eventsOf(flag.id)).toMatchObject([
      { event: "flag.created" },
      {
        event: "flag.toggled",
        cause: "scheduled",
        state_before: { enabled: false },
        state: { enabled: true },
        triggered_by: { id: project.userId, email: "ada@example.com" },
      },
    ]);
  });

  it("adds an entry to the audit log", async () => {
    const flag = await flags.createFlag();
    const due = dueChange(project, flag);
    await scheduler.send(due);
    await scheduler.outcomeOf(due);
    const [, entry] = await management.sql`
      select action, cause, actor_id, environment_id, state_before, state_after
      from changes where flag_id = ${flag.id} order by sequence`;
    expect(entry).toMatchObject({
      action: "state",
      cause: "scheduled",
      actor_id: project.userId,
      environment_id: project.environmentId,
      state_before: { enabled: false },
      state_after: { enabled: true },
    });
  });

  it("changes only the environment that it names", async () => {
    const flag = await flags.createFlag();
    const due = dueChange(project, flag, { environment_id: project.otherEnvironmentId });
    await scheduler.send(due);
    await scheduler.outcomeOf(due);
    const path = `/api/v1/flags/${flag.id}/environments/${project.otherEnvironmentId}`;
    const other = await management.call(path, { key: project.serverKey });
    expect(other.body.enabled).toBe(true);
    expect((await read(flag)).enabled).toBe(false);
  });

  it("enables and then disables the flag when two changes follow each other", async () => {
    const flag = await flags.createFlag();
    const on = dueChange(project, flag);
    const off = dueChange(project, flag, { action: "disable" });
    await scheduler.send(on);
    const first = await scheduler.outcomeOf(on);
    await scheduler.send(off);
    const second = await scheduler.outcomeOf(off);
    expect(Date.parse(second.applied_at ?? "")).toBeGreaterThan(Date.parse(first.applied_at ?? ""));
    const entries = await flags.historyOf(flag.id);
    expect(entries.map(({ enabled }) => enabled)).toEqual([false, true, false]);
    expect(await read(flag)).toMatchObject({ enabled: false, version: 3 });
  });

  it("accepts concurrent changes over HTTP and loses none", async () => {
    const flag = await flags.createFlag();
    const due = dueChange(project, flag);
    const [patched] = await Promise.all([
      flags.patch(`/api/v1/flags/${flag.id}`, { rollout_percentage: 5 }),
      scheduler.send(due),
    ]);
    await scheduler.outcomeOf(due);
    expect(patched.status).toBe(200);
    expect(await read(flag)).toMatchObject({ enabled: true, rollout_percentage: 5, version: 3 });
  });
});

describe("given a due change that the scheduler has not signed", () => {
  const signedBy = (service: SigningService, due: ScheduleDue) =>
    testMessageSigner(service)({
      subject: scheduleStream.due.subject,
      payload: JSON.stringify(due),
    });

  it.each<[string, (due: ScheduleDue) => Promise<string | undefined>]>([
    ["no signature", async () => undefined],
    ["the signature of the webhook dispatcher", (due) => signedBy("webhook-dispatcher", due)],
    ["the signature of management", (due) => signedBy("management", due)],
    [
      "the signature of another change",
      (due) => signedBy("scheduler", { ...due, action: "disable" }),
    ],
  ])("dead-letters it with %s, and changes nothing", async (_what, forge) => {
    const flag = await flags.createFlag();
    const due = dueChange(project, flag);
    await scheduler.sendForged(due, await forge(due));
    await scheduler.queueIsEmpty();
    expect(await read(flag)).toMatchObject({ enabled: false, version: 1 });
    expect((await scheduler.deadLetters()).at(-1)).toEqual({
      text: JSON.stringify(due),
      reason: "no valid signature",
    });
  });
});

describe("given a flag that already has the requested state", () => {
  it("records the change as applied now, without an entry, event or version", async () => {
    const flag = await flags.createFlag({ enabled: true });
    const moment = new Date(Date.now() + 60_000);
    const clock = management.clock.now;
    management.clock.now = () => moment;
    const due = dueChange(project, flag);
    await scheduler.send(due);
    const resolved = await scheduler.outcomeOf(due).finally(() => {
      management.clock.now = clock;
    });
    expect(resolved).toMatchObject({ outcome: "applied", applied_at: moment.toISOString() });
    expect(await flags.historyOf(flag.id)).toHaveLength(1);
    expect(await flags.eventsOf(flag.id)).toHaveLength(1);
    expect(await read(flag)).toMatchObject({ enabled: true, version: 1 });
  });
});

describe("given a repeated message", () => {
  it("makes the change once, and publishes the same outcome each time", async () => {
    const flag = await flags.createFlag();
    const due = dueChange(project, flag);
    await Promise.all(Array.from({ length: 50 }, () => scheduler.send(due)));
    await scheduler.queueIsEmpty();
    expect(await read(flag)).toMatchObject({ enabled: true, version: 2 });
    expect(await flags.historyOf(flag.id)).toHaveLength(2);
    expect(await flags.eventsOf(flag.id)).toHaveLength(2);
    const outcomes = scheduler.outcomesOf(due).map((outcome) => JSON.stringify(outcome));
    expect(new Set(outcomes).size).toBe(1);
  });

  it("does not make the change again after a manual change", async () => {
    const flag = await flags.createFlag();
    const due = dueChange(project, flag);
    await scheduler.send(due);
    await scheduler.outcomeOf(due);
    await flags.patch(`/api/v1/flags/${flag.id}`, { enabled: false });
    await scheduler.send(due);
    await scheduler.queueIsEmpty();
    expect(await read(flag)).toMatchObject({ enabled: false, version: 3 });
  });
});

describe("given a deleted flag", () => {
  it("cancels the change", async () => {
    const flag = await flags.createFlag();
    await management.call(`/api/v1/flags/${flag.id}`, { method: "DELETE", key: project.serverKey });
    const due = dueChange(project, flag);
    await scheduler.send(due);
    expect(await scheduler.outcomeOf(due)).toEqual({
      id: due.id,
      schedule_id: due.schedule_id,
      outcome: "cancelled",
      applied_at: null,
      reason: "The flag or the environment was deleted.",
    });
  });
});

describe("given a message with ids of different tenants", () => {
  let other: Awaited<ReturnType<typeof seedProject>>;
  beforeAll(async () => {
    other = await seedProject(management);
  });

  it.each([
    ["another tenant's user", () => ({ user_id: other.userId }), "failed"],
    ["an unknown user", () => ({ user_id: randomUUID() }), "failed"],
    ["another tenant's project", () => ({ project_id: other.projectId }), "failed"],
    ["another tenant's organization", () => ({ organization_id: other.organizationId }), "failed"],
    ["another tenant's environment", () => ({ environment_id: other.environmentId }), "cancelled"],
    [
      "another tenant's ids except for the flag",
      () => ({
        user_id: other.userId,
        project_id: other.projectId,
        organization_id: other.organizationId,
        environment_id: other.environmentId,
      }),
      "cancelled",
    ],
  ])("changes nothing: %s", async (_what, mixedUp, outcome) => {
    const flag = await flags.createFlag();
    const due = dueChange(project, flag, mixedUp());
    await scheduler.send(due);
    expect(await scheduler.outcomeOf(due)).toMatchObject({ outcome, reason: expect.any(String) });
    expect(await read(flag)).toMatchObject({ enabled: false, version: 1 });
    expect(await flags.historyOf(flag.id)).toHaveLength(1);
    expect(await flags.eventsOf(flag.id)).toHaveLength(1);
  });
});

describe("given a protection that began after the schedule was set", () => {
  async function protectedFlag(settings: Record<string, unknown>, exceptions: string[]) {
    const scope = await seedProject(management);
    const given = flagsOf(management, scope);
    const flag = await given.createFlag(settings);
    const path = `/api/v1/projects/${scope.projectId}/environments/${scope.environmentId}`;
    const body = { protected: { approvals: 1, without_approval: exceptions } };
    const made = await management.call(path, { method: "PATCH", key: operatorToken, body });
    expect(made.status).toBe(200);
    const state = async () =>
      (await management.call(`/api/v1/flags/${flag.id}`, { key: scope.serverKey })).body;
    return { scope, flag, state };
  }

  it.each([
    ["enable", ["off"]],
    ["disable", ["rollback"]],
  ] as const)(
    "fails `%s` with the exceptions %j, and the outcome says why",
    async (action, exceptions) => {
      const settings = { enabled: action === "disable" };
      const { scope, flag, state } = await protectedFlag(settings, [...exceptions]);
      const due = dueChange(scope, flag, { action });
      await scheduler.send(due);
      expect(await scheduler.outcomeOf(due)).toMatchObject({
        ...{ outcome: "failed", applied_at: null },
        reason: "production is protected: this change needs an approved change request.",
      });
      expect(await state()).toMatchObject({ ...settings, version: 1 });
    },
  );

  it("disables with the exception `off`", async () => {
    const { scope, flag, state } = await protectedFlag({ enabled: true }, ["off"]);
    const due = dueChange(scope, flag, { action: "disable" });
    await scheduler.send(due);
    expect(await scheduler.outcomeOf(due)).toMatchObject({ outcome: "applied", reason: null });
    expect(await state()).toMatchObject({ enabled: false, version: 2 });
  });
});

describe("given 500 changes of 500 flags that come due at once", () => {
  it("makes each change once", async () => {
    const many = 500;
    const made = await Promise.all(Array.from({ length: many }, () => flags.createFlag()));
    const due = made.map((flag) => dueChange(project, flag));
    const receivedBefore = scheduler.received.length;
    await Promise.all(due.map((change) => scheduler.send(change)));
    await scheduler.queueIsEmpty();
    const received = scheduler.received.slice(receivedBefore);
    expect(received.filter(({ outcome }) => outcome === "applied")).toHaveLength(many);
    const [row] = await management.sql`
      select count(*)::integer as entries, count(distinct flag_id)::integer as flags
      from history
      where change_type = 'scheduled' and flag_id = any(${made.map(({ id }) => id)}::uuid[])`;
    expect(row).toEqual({ entries: many, flags: many });
  }, 60_000);
});
