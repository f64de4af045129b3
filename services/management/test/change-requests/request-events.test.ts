import { checkChangeRequestEvent, checkProtectionEvent } from "@halyard/contracts";
import { afterAll, describe, expect, it } from "@jest/globals";
import { readFullState } from "../../src/publishing/full-state.ts";
import { openManagement } from "../management-fixture.ts";
import { applyDueAt, reviewsOf, staleSearchOf } from "./review-fixture.ts";

/** Tests the events of change requests and protections, which each step writes in its transaction. */

const management = await openManagement();
afterAll(() => management.close());
const given = reviewsOf(management);

/** Returns the names of the events after the first, which is that of the protection of the new project. */
const stepsOf = async ({ id }: { id: string }) =>
  (await given.eventsOf(id)).slice(1).map(({ event }) => event);

describe("the events of a change request", () => {
  it("are those of its steps, in order", async () => {
    const { open, editor, approver, second, project, production } = await given.reviewed({
      approvals: 2,
    });
    const { body: request } = await open({ rollout_percentage: 50 }, editor, { reason: "Calm" });
    expect((await given.approve(approver, request)).body.status).toBe("open");
    expect(await stepsOf(project)).toEqual(["change_request.opened"]);
    await given.approve(second, request);
    await given.post(editor, request, "apply");
    const [, ...events] = await given.eventsOf(project.id);
    const ofRequest = { id: request.id, title: "A change", reason: "Calm" };
    const environments = [{ id: production.id, name: "production" }];
    const summary = "checkout in production: 100 % → 50 %";
    expect(events).toMatchObject([
      {
        ...{ event: "change_request.opened", version: 1, cause: "manual" },
        change_request: { ...ofRequest, status: "open", environments, summary },
        triggered_by: { id: editor.userId },
      },
      {
        ...{ event: "change_request.approved", version: 3, triggered_by: { id: second.userId } },
        change_request: { ...ofRequest, status: "approved" },
      },
      {
        ...{ event: "change_request.applied", version: 4, triggered_by: { id: editor.userId } },
        change_request: { ...ofRequest, status: "applied" },
      },
    ]);
    for (const event of events) expect(checkChangeRequestEvent(event)).toMatchObject({ ok: true });
    const times = events.map(({ timestamp }) => timestamp);
    expect(times).toEqual([...new Set(times)].sort());
  });

  it("are none for a draft, a third approval and a withdrawal", async () => {
    const { change, open, editor, approver, second, project } = await given.reviewed();
    await change({ rollout_percentage: 10 });
    const { body: request } = await open({ rollout_percentage: 50 });
    for (const by of [approver, second]) await given.approve(by, request);
    await given.post(editor, request, "withdraw");
    expect(await stepsOf(project)).toEqual(["change_request.opened", "change_request.approved"]);
  });

  it("have the comment of a rejection and the reason of a bypass", async () => {
    const { open, approver, admin, project } = await given.reviewed();
    const { body: rejected } = await open({ rollout_percentage: 50 });
    await given.post(approver, rejected, "reject", { comment: "Not in a sale" });
    const { body: bypassed } = await open({ rollout_percentage: 60 });
    await given.post(admin, bypassed, "bypass", { reason: "An emergency" });
    const [, , reject, , bypass] = await given.eventsOf(project.id);
    expect(reject).toMatchObject({ event: "change_request.rejected", comment: "Not in a sale" });
    expect(bypass).toMatchObject({
      ...{ event: "change_request.bypassed", bypass_reason: "An emergency" },
      change_request: { id: bypassed.id, status: "applied" },
    });
    expect(bypass).not.toHaveProperty("comment");
  });

  it("say that a request is stale, or was applied at its time", async () => {
    const { open, editor, approver, project, flag } = await given.reviewed({
      ...{ approvals: 1, without_approval: ["off"] },
    });
    const approved = async (patch: object, more: object = {}) => {
      const { body } = await open(patch, editor, more);
      await given.approve(approver, body);
      return body;
    };
    const apply_at = new Date(Date.now() + 60_000).toISOString();
    const on = await approved({ enabled: true }, { apply_at });
    await applyDueAt(management, 61_000);
    const stale = await approved({ rollout_percentage: 50 });
    await editor.call(`/api/v1/flags/${flag.id}`, { method: "PATCH", body: { enabled: false } });
    await given.post(editor, stale, "apply");
    const path = `/api/v1/change-requests/${stale.id}`;
    await editor.call(path, { method: "PATCH", body: { title: "Still stale" } });
    const [stored] = await management.sql`
      select status from change_requests where id = ${stale.id}`;
    expect(stored).toEqual({ status: "stale" });
    const approvals = (await stepsOf(project)).filter((event) => event.endsWith(".approved"));
    expect(approvals).toHaveLength(2);
    const events = (await given.eventsOf(project.id)).filter(({ event }) =>
      ["change_request.applied", "change_request.stale"].includes(event),
    );
    expect(events).toMatchObject([
      {
        ...{ event: "change_request.applied", cause: "scheduled", change_request: { id: on.id } },
        triggered_by: { id: editor.userId },
      },
      // The caller who applies it, or the leader, has found it stale.
      { event: "change_request.stale", change_request: { id: stale.id, status: "stale" } },
    ]);
  });

  it("say that a change has made a request stale, before anybody applies it", async () => {
    const { open, change, project } = await given.reviewed(
      { approvals: 1, without_approval: ["off"] },
      async ({ call, statePath }) => call("PATCH", statePath, { enabled: true }),
    );
    const search = staleSearchOf(management);
    const { body: request } = await open({ rollout_percentage: 50 });
    await search();
    await change({ enabled: false });
    await search();
    await search();
    const [, opened, ...others] = await given.eventsOf(project.id);
    expect(opened).toMatchObject({ event: "change_request.opened" });
    expect(others).toMatchObject([
      {
        ...{ event: "change_request.stale", cause: "scheduled", version: 2 },
        change_request: { id: request.id, status: "stale" },
        triggered_by: { email: "management" },
      },
    ]);
  });

  it("say that a request is open again if its approvals do not count at its time", async () => {
    const { open, editor, approver, project, organizationId, serverKey } = await given.reviewed();
    const apply_at = new Date(Date.now() + 60_000).toISOString();
    const { body: request } = await open({ enabled: true }, editor, { apply_at });
    await given.approve(approver, request);
    const { body: held } = await given.asOperator(given.grantsOf(organizationId), {});
    const { id } = held.grants.find(
      ({ subject }: { subject: { user_id?: string } }) => subject.user_id === approver.userId,
    );
    await given.withdraw(organizationId, id);
    await applyDueAt(management, 61_000);
    expect((await given.eventsOf(project.id)).at(-1)).toMatchObject({
      ...{ event: "change_request.opened", cause: "scheduled", version: 3 },
      change_request: { id: request.id, status: "open" },
      triggered_by: { email: "management" },
    });
    const { body: log } = await management.call(`/api/v1/projects/${project.id}/changes`, {
      key: serverKey,
    });
    expect(log.changes[0]).toMatchObject({
      ...{ action: "change_request_reopened", change_type: "scheduled" },
      after: { change_request: request.id },
    });
  });

  it("have a bounded summary of whole lines, and count the other changes", async () => {
    const { editor, project, production, serverKey } = await given.reviewed();
    const changes = [];
    for (let number = 0; number < 120; number += 1) {
      const { body: flag } = await management.call("/api/v1/flags", {
        ...{ method: "POST", key: serverKey },
        body: { key: `flag-${number}`, name: "A flag" },
      });
      const of = { kind: "state", flag_id: flag.id, environment_id: production.id };
      changes.push({ ...of, patch: { rollout_percentage: 50 } });
    }
    const body = { title: "Everything", changes };
    await editor.call("/api/v1/change-requests", { method: "POST", body });
    const { change_request: request } = (await given.eventsOf(project.id)).at(-1);
    const lines = request.summary.split("\n");
    expect(request.summary.length).toBeLessThan(4_100);
    expect(lines.at(-1)).toBe(`${120 - (lines.length - 1)} more changes`);
    expect(lines.at(-2)).toMatch(/^flag-\d+ in production: 100 % → 50 %$/);
  });
});

describe("the snapshot entry of an environment", () => {
  it("has the exceptions of the protection, also in a rebuilt snapshot", async () => {
    const { protect, production } = await given.reviewed({
      ...{ approvals: 1, without_approval: ["off"] },
    });
    const rebuilt = async () => {
      for await (const page of readFullState(management.sql))
        for (const { value } of page)
          if ("environment_id" in value && value.kind === "environment")
            if (value.environment_id === production.id) return value;
      throw new Error("The environment is not in the snapshot.");
    };
    const published = async () => {
      const [row] = await management.sql<[{ payload: string }]>`
        select payload from outbox
        where stream = 'snapshot' and subject like ${`%.environment.${production.id}`}
        order by id desc limit 1`;
      return JSON.parse(row.payload);
    };
    const protection = { without_approval: ["off"] };
    expect(await published()).toMatchObject({ protected: protection, version: 2 });
    expect(await rebuilt()).toEqual(await published());
    await protect({ protected: null, bypass_reason: "The project ends" });
    expect(await published()).not.toHaveProperty("protected");
    expect(await rebuilt()).toEqual(await published());
  });
});

describe("the event of a changed protection", () => {
  it("has the protection before and after, and the reason of a bypass", async () => {
    const { protect, project, production, admin } = await given.reviewed();
    await protect({ protected: { approvals: 2 } });
    await protect({ caution: false });
    await protect({ protected: null, bypass_reason: "The project ends" });
    const events = await given.eventsOf(project.id);
    const at = (approvals: number) => ({ approvals, self_approval: false, without_approval: [] });
    expect(events).toMatchObject([
      { version: 2, protected_before: null, protected: at(1), triggered_by: { id: admin.userId } },
      { version: 3, protected_before: at(1), protected: at(2) },
      {
        ...{ version: 5, protected_before: at(2), protected: null },
        bypass_reason: "The project ends",
        environment: { id: production.id, name: "production" },
      },
    ]);
    expect(events[0]).not.toHaveProperty("bypass_reason");
    for (const event of events) expect(checkProtectionEvent(event)).toMatchObject({ ok: true });
  });

  it("precedes that of the request that lowered the protection", async () => {
    const { editor, approver, project, production } = await given.reviewed();
    const change = { kind: "protection", environment_id: production.id, protected: null };
    const body = { title: "End it", changes: [change] };
    const opened = await editor.call("/api/v1/change-requests", { method: "POST", body });
    await given.approve(approver, opened.body);
    await given.post(editor, opened.body, "apply");
    expect((await stepsOf(project)).slice(-2)).toEqual([
      "environment.protection_changed",
      "change_request.applied",
    ]);
  });
});
