import { afterAll, describe, expect, it } from "@jest/globals";
import { openManagement } from "../management-fixture.ts";
import { applyDueAt, reviewsOf } from "./review-fixture.ts";

/** Tests change requests of protected environments, over HTTP. */

const management = await openManagement();
afterAll(() => management.close());
const given = reviewsOf(management);

const outcome = ({ status, body }: { status: number; body: { error?: { code: string } } }) => [
  status,
  body?.error?.code,
];

describe("a change of a protected environment", () => {
  it("is refused, and makes one draft of the body that was sent", async () => {
    const { change, editor, state } = await given.reviewed();
    const patch = { targeting_rules: [{ name: "All", conditions: [] }], rollout_percentage: 50 };
    const answers = [await change(patch), await change(patch), await change(patch)];
    expect(answers.map(outcome)).toEqual(Array(3).fill([409, "APPROVAL_001"]));
    const [location, ...others] = answers.map(({ headers }) => headers.get("location"));
    expect(others).toEqual([location, location]);
    expect(await state()).toMatchObject({ rollout_percentage: 100, targeting_rules: [] });
    const draft = await editor.call(location ?? "");
    expect(draft.body).toMatchObject({
      status: "draft",
      changes: [
        {
          kind: "state",
          flag_key: "checkout",
          environment_name: "production",
          before: { rollout_percentage: 100 },
          after: { rollout_percentage: 50, targeting_rules: [{ name: "All" }] },
        },
      ],
      summary: "checkout in production: 100 % → 50 %, rule “All” added",
      needed: [{ environment_name: "production", approvals: 1, given: 0 }],
    });
  });

  it("proposes null as the variation for all others, and keeps it in a rebase", async () => {
    const { editor, byKey, production } = await given.reviewed();
    const color = await byKey("POST", "/api/v1/flags", {
      ...{ key: "color", name: "Color", value_type: "string" },
      variations: ["blue", "red"].map((key) => ({ key, value: key })),
    });
    const { headers } = await editor.call(
      `/api/v1/flags/${color.id}/environments/${production.id}`,
      { method: "PATCH", body: { off_variation: null } },
    );
    const changes = [{ patch: { off_variation: null }, after: { off_variation: null } }];
    const { body: draft } = await editor.call(headers.get("location") ?? "");
    expect(draft.changes).toMatchObject(changes);
    const { body: request } = await editor.call("/api/v1/change-requests", {
      method: "POST",
      body: {
        title: "Without red",
        changes: [
          {
            ...{ kind: "state", flag_id: color.id, environment_id: production.id },
            patch: { off_variation: null },
          },
        ],
      },
    });
    expect((await given.post(editor, request, "rebase")).body.changes).toMatchObject(changes);
  });

  it("is opened as a request if the client prefers that", async () => {
    const { change } = await given.reviewed();
    const answer = await change({ enabled: true }, undefined, { prefer: "respond-async" });
    expect([answer.status, answer.body.status]).toEqual([202, "open"]);
    expect(answer.headers.get("location")).toBe(`/api/v1/change-requests/${answer.body.id}`);
  });

  it("is made by an approved request, once", async () => {
    const { open, editor, approver, state } = await given.reviewed();
    const { body: request } = await open({ enabled: true });
    expect(outcome(await given.post(editor, request, "apply"))).toEqual([409, "APPROVAL_001"]);
    const approved = await given.approve(approver, request);
    expect([approved.status, approved.body.status]).toEqual([200, "approved"]);
    const [one, other] = await Promise.all([
      given.post(editor, request, "apply"),
      given.post(approver, request, "apply"),
    ]);
    expect([one.status, other.status]).toEqual([200, 200]);
    expect(one.body.applied_at).toBe(other.body.applied_at);
    expect(await state()).toMatchObject({ enabled: true });
  });

  it("has the request in the audit log", async () => {
    const { open, editor, approver, serverKey, project } = await given.reviewed();
    const { body: request } = await open({ enabled: true });
    await given.approve(approver, request);
    const { body: applied } = await given.post(editor, request, "apply");
    const { body } = await management.call(`/api/v1/projects/${project.id}/changes`, {
      key: serverKey,
    });
    expect(body.changes.slice(0, 4)).toMatchObject([
      { action: "change_request_applied", cause_id: applied.cause_id },
      { action: "state", cause_id: applied.cause_id, actor: { via: "change_request" } },
      { action: "change_request_approved", actor: { id: approver.userId } },
      { action: "change_request_opened", actor: { id: editor.userId } },
    ]);
  });
});

describe("an approval", () => {
  it("is of the content that was seen", async () => {
    const { open, approver } = await given.reviewed();
    const { body: request } = await open({ enabled: true });
    const other = { ...request, content_hash: "0".repeat(64) };
    expect(outcome(await given.approve(approver, other))).toEqual([412, "CONFLICT_003"]);
  });

  it("falls when the content is edited, but not with the title", async () => {
    const { open, approver, second, editor, stateChange } = await given.reviewed();
    const { body: request } = await open({ enabled: true });
    await given.approve(approver, request);
    const path = `/api/v1/change-requests/${request.id}`;
    const titled = await editor.call(path, { method: "PATCH", body: { title: "Another title" } });
    expect([titled.body.status, titled.body.title]).toEqual(["approved", "Another title"]);
    const changes = [stateChange({ enabled: true, rollout_percentage: 10 })];
    const edited = await second.call(path, { method: "PATCH", body: { changes } });
    expect(edited.body).toMatchObject({ status: "open", needed: [{ given: 0 }] });
    expect(outcome(await given.post(editor, request, "apply"))).toEqual([409, "APPROVAL_001"]);
    // An editor of the request is a contributor.
    expect(outcome(await given.approve(second, edited.body))).toEqual([403, "AUTH_002"]);
    expect((await given.approve(approver, edited.body)).body.status).toBe("approved");
  });

  it("is not one's own, unless the protection permits it", async () => {
    const strict = await given.reviewed();
    const { body: own } = await strict.open({ enabled: true }, strict.approver);
    expect(outcome(await given.approve(strict.approver, own))).toEqual([403, "AUTH_002"]);
    const open = await given.reviewed({ approvals: 1, self_approval: true });
    const { body: request } = await open.open({ enabled: true }, open.approver);
    expect((await given.approve(open.approver, request)).body.status).toBe("approved");
  });

  it("counts once for each person, and the number is that of the environment", async () => {
    const { open, approver, second } = await given.reviewed({ approvals: 2 });
    const { body: request } = await open({ enabled: true });
    await given.approve(approver, request);
    const again = await given.approve(approver, request);
    expect(again.body).toMatchObject({ status: "open", needed: [{ approvals: 2, given: 1 }] });
    expect((await given.approve(second, request)).body.status).toBe("approved");
  });

  it("counts only while the approver has the role", async () => {
    const { open, approver, editor, organizationId } = await given.reviewed();
    const { body: request } = await open({ enabled: true });
    await given.approve(approver, request);
    const { body } = await given.asOperator(given.grantsOf(organizationId), {});
    const { id } = body.grants.find(
      ({ subject }: { subject: { user_id?: string } }) => subject.user_id === approver.userId,
    );
    await given.withdraw(organizationId, id);
    expect(outcome(await given.post(editor, request, "apply"))).toEqual([409, "APPROVAL_001"]);
    const read = await editor.call(`/api/v1/change-requests/${request.id}`);
    expect(read.body).toMatchObject({ status: "open", needed: [{ given: 0 }] });
  });

  it("is given by no key", async () => {
    const { open, serverKey } = await given.reviewed();
    const { body: request } = await open({ enabled: true });
    const answer = await management.call(`/api/v1/change-requests/${request.id}/approve`, {
      ...{ method: "POST", key: serverKey, body: { content_hash: request.content_hash } },
    });
    expect(outcome(answer)).toEqual([403, "AUTH_002"]);
  });
});

describe("a stale request", () => {
  it("is not applied, names the difference, and is approved again after a rebase", async () => {
    const protection = { approvals: 1, without_approval: ["off"] };
    const { open, change, editor, approver, state } = await given.reviewed(protection);
    const { body: on } = await open({ enabled: true });
    await given.approve(approver, on);
    await given.post(editor, on, "apply");
    const { body: request } = await open({ rollout_percentage: 50 });
    await given.approve(approver, request);
    // The kill switch needs no approval, and does not wait.
    expect((await change({ enabled: false })).status).toBe(200);
    expect(outcome(await given.post(editor, request, "apply"))).toEqual([409, "CONFLICT_001"]);
    const stale = await editor.call(`/api/v1/change-requests/${request.id}`);
    expect(stale.body).toMatchObject({
      status: "stale",
      differences: ["checkout in production"],
      changes: [{ before: { enabled: true }, now: { enabled: false } }],
    });
    const rebased = await given.post(editor, request, "rebase");
    expect(rebased.body).toMatchObject({
      status: "open",
      approvals: [],
      changes: [{ after: { enabled: false, rollout_percentage: 50 } }],
    });
    await given.approve(approver, rebased.body);
    expect((await given.post(editor, request, "apply")).status).toBe(200);
    expect(await state()).toMatchObject({ enabled: false, rollout_percentage: 50 });
  });

  it("has the current variations, audience and protection beside those before", async () => {
    const { editor, admin, byKey, production } = await given.reviewed({ approvals: 2 });
    const variations = (blue: string) => [
      { key: "blue", value: blue },
      { key: "red", value: "#f00" },
    ];
    const typed = { value_type: "string", variations: variations("#00f") };
    const color = await byKey("POST", "/api/v1/flags", { key: "color", name: "Color", ...typed });
    await byKey("POST", "/api/v1/audiences", { key: "beta", name: "Beta" });
    const match = (plan: string) => [[{ attribute: "plan", operator: "equals", value: plan }]];
    const open = async (blue: string, plan: string, approvals: number) => {
      const changes = [
        { kind: "flag_variations", flag_id: color.id, variations: variations(blue) },
        { kind: "audience", audience: "beta", patch: { match: match(plan) } },
        { kind: "protection", environment_id: production.id, protected: { approvals } },
      ];
      const body = { title: "Everything", changes };
      return (await editor.call("/api/v1/change-requests", { method: "POST", body })).body;
    };
    const [request, other] = [await open("#00e", "pro", 1), await open("#00a", "free", 3)];
    await given.post(admin, other, "bypass", { reason: "An outage" });
    const stale = await editor.call(`/api/v1/change-requests/${request.id}`);
    expect(stale.body.changes).toMatchObject([
      { before: variations("#00f"), variations: variations("#00e"), now: variations("#00a") },
      { before: { match: [] }, now: { match: match("free"), list: null } },
      { before: { approvals: 2 }, protected: { approvals: 1 }, now: { approvals: 3 } },
    ]);
  });

  it("is one whose audience was widened", async () => {
    const { open, editor, approver, serverKey } = await given.reviewed();
    const body = { key: "beta", name: "Beta" };
    await management.call("/api/v1/audiences", { method: "POST", key: serverKey, body });
    const rules = [{ name: "Beta", conditions: [{ audience: "beta" }] }];
    const { body: request } = await open({ targeting_rules: rules });
    await given.approve(approver, request);
    const match = [[{ attribute: "plan", operator: "equals", value: "pro" }]];
    const widened = await editor.call("/api/v1/audiences/beta", {
      method: "PATCH",
      body: { match },
    });
    expect(widened.status).toBe(200);
    expect(outcome(await given.post(editor, request, "apply"))).toEqual([409, "CONFLICT_001"]);
  });

  it("is one whose audience was deleted, and created again with other users", async () => {
    const { open, editor, approver, serverKey } = await given.reviewed();
    const create = (match: object[]) =>
      management.call("/api/v1/audiences", {
        ...{ method: "POST", key: serverKey, body: { key: "beta", name: "Beta", match } },
      });
    await create([]);
    const rules = [{ name: "Beta", conditions: [{ audience: "beta" }] }];
    const { body: request } = await open({ targeting_rules: rules });
    await given.approve(approver, request);
    await editor.call("/api/v1/audiences/beta", { method: "DELETE" });
    const recreated = await create([[{ attribute: "plan", operator: "equals", value: "pro" }]]);
    expect(recreated.body.version).toBe(1);
    expect(outcome(await given.post(editor, request, "apply"))).toEqual([409, "CONFLICT_001"]);
  });

  it("is one whose environment got another protection", async () => {
    const { open, editor, approver, protect } = await given.reviewed();
    const { body: request } = await open({ enabled: true });
    await given.approve(approver, request);
    await protect({ protected: { approvals: 2 } });
    expect(outcome(await given.post(editor, request, "apply"))).toEqual([409, "CONFLICT_001"]);
  });
});

describe("the list of requests", () => {
  async function oneOfEach() {
    const review = await given.reviewed({ approvals: 1, without_approval: ["off"] });
    const { open, change, editor, approver } = review;
    const approved = async (patch: object) => {
      const { body: request } = await open(patch);
      await given.approve(approver, request);
      return request;
    };
    const on = await approved({ enabled: true });
    await given.post(editor, on, "apply");
    await change({ rollout_percentage: 4 });
    const stale = await approved({ rollout_percentage: 5 });
    await change({ enabled: false });
    const { body: pending } = await open({ rollout_percentage: 6 });
    const ready = await approved({ rollout_percentage: 7 });
    const list = async (query: string) =>
      (await editor.call(`/api/v1/change-requests?${query}`)).body;
    const listed = async (query: string) =>
      (await list(query)).change_requests.map((each: { id: string; status: string }) => [
        each.id,
        each.status,
      ]);
    return { on, stale, pending, ready, list, listed };
  }

  it("is filtered by the status that it contains", async () => {
    const { on, stale, pending, ready, listed } = await oneOfEach();
    expect(await listed("status=stale")).toEqual([[stale.id, "stale"]]);
    expect(await listed("status=open")).toEqual([[pending.id, "open"]]);
    expect(await listed("status=approved")).toEqual([[ready.id, "approved"]]);
    expect(await listed("")).toEqual([
      [ready.id, "approved"],
      [pending.id, "open"],
      [stale.id, "stale"],
      [on.id, "applied"],
    ]);
    expect(await listed("status=draft")).toEqual([[expect.any(String), "draft"]]);
  });

  it("counts all requests that have not ended, on any page", async () => {
    const { list } = await oneOfEach();
    const page = await list("status=applied&limit=1");
    expect(page.pending).toEqual({ open: 1, approved: 1, stale: 1 });
  });
});

describe("the end of a request", () => {
  it("is a rejection by one approver", async () => {
    const { open, approver, second, editor } = await given.reviewed({ approvals: 2 });
    const { body: request } = await open({ enabled: true });
    await given.approve(approver, request);
    expect(outcome(await given.post(editor, request, "reject"))).toEqual([403, "AUTH_002"]);
    const rejected = await given.post(second, request, "reject", { comment: "Not now" });
    expect(rejected.body).toMatchObject({ status: "rejected", comment: "Not now" });
    expect(outcome(await given.approve(second, request))).toEqual([409, "CONFLICT_001"]);
  });

  it("is a withdrawal by its author", async () => {
    const { open, approver, editor } = await given.reviewed();
    const { body: request } = await open({ enabled: true });
    expect(outcome(await given.post(approver, request, "withdraw"))).toEqual([403, "AUTH_002"]);
    expect((await given.post(editor, request, "withdraw")).body.status).toBe("withdrawn");
  });

  it("is a bypass by an admin with a reason, or by the operator", async () => {
    const { open, admin, approver, serverKey, project } = await given.reviewed();
    const { body: one } = await open({ enabled: true });
    const reason = { reason: "An outage" };
    expect(outcome(await given.post(approver, one, "bypass", reason))).toEqual([403, "AUTH_002"]);
    const bypassed = await given.post(admin, one, "bypass", reason);
    expect(bypassed.body).toMatchObject({ status: "applied", bypass_reason: "An outage" });
    const { body: other } = await open({ rollout_percentage: 5 });
    const answer = await given.asOperator(`/api/v1/change-requests/${other.id}/bypass`, {
      ...{ method: "POST", body: reason },
    });
    expect(answer.body.status).toBe("applied");
    const { body } = await management.call(`/api/v1/projects/${project.id}/changes`, {
      key: serverKey,
    });
    expect(body.changes[0]).toMatchObject({
      action: "change_request_bypassed",
      after: { bypass_reason: "An outage" },
      actor: { via: "operator" },
    });
  });
});

describe("exceptions", () => {
  it("are `off` alone, and no other member beside it", async () => {
    const { open, change, editor, approver } = await given.reviewed({
      ...{ approvals: 1, without_approval: ["off"] },
    });
    const { body: request } = await open({ enabled: true });
    await given.approve(approver, request);
    await given.post(editor, request, "apply");
    const beside = await change({ enabled: false, rollout_percentage: 5 });
    expect(outcome(beside)).toEqual([409, "APPROVAL_001"]);
    expect((await change({ enabled: false })).status).toBe(200);
    expect(outcome(await change({ enabled: true }))).toEqual([409, "APPROVAL_001"]);
  });

  it("are not `off` if a flag requires that this one is off", async () => {
    const { open, change, editor, approver } = await given.reviewed({
      ...{ approvals: 1, without_approval: ["off"] },
    });
    const { body: on } = await open({ enabled: true });
    await given.approve(approver, on);
    await given.post(editor, on, "apply");
    const flag = { key: "old-checkout", name: "Old", requires: [{ flag: "checkout", is: "off" }] };
    expect((await editor.call("/api/v1/flags", { method: "POST", body: flag })).status).toBe(201);
    expect(outcome(await change({ enabled: false }))).toEqual([409, "APPROVAL_001"]);
  });

  it("are rollbacks to a state that stood before or was approved, but never on", async () => {
    const { open, change, editor, approver, statePath, state } = await given.reviewed({
      ...{ approvals: 1, without_approval: ["off", "rollback"] },
    });
    const apply = async (patch: object) => {
      const { body: request } = await open(patch);
      await given.approve(approver, request);
      const applied = await given.post(editor, request, "apply");
      expect(applied.status).toBe(200);
    };
    const rollBack = () => editor.call(`${statePath}/rollback`, { method: "POST" });
    await apply({ rollout_percentage: 40 });
    expect((await rollBack()).status).toBe(200);
    expect(await state()).toMatchObject({ rollout_percentage: 100 });
    // A rollback does not undo another one.
    expect(outcome(await rollBack())).toEqual([409, "APPROVAL_001"]);
    await apply({ enabled: true });
    expect((await change({ enabled: false })).status).toBe(200);
    // It would undo the kill switch.
    expect(outcome(await rollBack())).toEqual([409, "APPROVAL_001"]);
  });
});

describe("the protection", () => {
  it("is raised by an admin, lowered by a request, and changed by no key", async () => {
    const { protect, protectedPath, serverKey, approver, editor, admin } = await given.reviewed({
      approvals: 2,
    });
    expect(outcome(await protect({ protected: { approvals: 3 } }, editor))).toEqual([
      403,
      "AUTH_002",
    ]);
    const byKey = { method: "PATCH", key: serverKey, body: { protected: null } };
    expect(outcome(await management.call(protectedPath, byKey))).toEqual([403, "AUTH_002"]);
    const lowered = await protect({ protected: { approvals: 1 } });
    expect(outcome(lowered)).toEqual([409, "APPROVAL_001"]);
    const { body: request } = await admin.call(`${lowered.headers.get("location")}/open`, {
      method: "POST",
    });
    expect(request.summary).toBe("production: protection 2 approvals → 1 approval");
    expect((await given.approve(approver, request)).body.status).toBe("open");
    const ended = await protect({ protected: null, bypass_reason: "The company closes" });
    expect([ended.status, ended.body.protected]).toEqual([200, null]);
  });

  it("keeps the environment and the project from being deleted without a reason", async () => {
    const { production, project, protectedPath, organizationId } = await given.reviewed();
    const remove = (path: string, id: string, more = "") =>
      given.asOperator(`${path}?confirm=${id}${more}`, { method: "DELETE" });
    const ofProject = `/api/v1/organizations/${organizationId}/projects/${project.id}`;
    expect(outcome(await remove(protectedPath, production.id))).toEqual([409, "APPROVAL_001"]);
    expect(outcome(await remove(ofProject, project.id))).toEqual([409, "APPROVAL_001"]);
    const reason = "&bypass_reason=Wrong%20project";
    expect((await remove(protectedPath, production.id, reason)).status).toBe(204);
    expect((await remove(ofProject, project.id)).status).toBe(204);
  });
});

describe("a request with a time", () => {
  it("is applied at that time, once, in the name of its author", async () => {
    const { open, editor, approver, state, serverKey, project } = await given.reviewed();
    const apply_at = new Date(Date.now() + 60_000).toISOString();
    const { body: request } = await open({ enabled: true }, editor, { apply_at });
    await given.approve(approver, request);
    expect(outcome(await given.post(editor, request, "apply"))).toEqual([409, "CONFLICT_001"]);
    await applyDueAt(management);
    expect(await state()).toMatchObject({ enabled: false });
    await Promise.all([applyDueAt(management, 60_001), applyDueAt(management, 60_001)]);
    expect(await state()).toMatchObject({ enabled: true, version: 2 });
    const { body } = await management.call(`/api/v1/projects/${project.id}/changes`, {
      key: serverKey,
    });
    expect(body.changes.slice(0, 2)).toMatchObject([
      { action: "change_request_applied", change_type: "scheduled", actor: { id: editor.userId } },
      { action: "state", change_type: "scheduled", actor: { via: "change_request" } },
    ]);
  });

  it("is neither approved, rebased nor edited after its time, unless the time is edited", async () => {
    const { open, editor, approver } = await given.reviewed();
    const apply_at = new Date(Date.now() + 60_000).toISOString();
    const { body: request } = await open({ enabled: true }, editor, { apply_at });
    const path = `/api/v1/change-requests/${request.id}`;
    const edit = (body: object) => editor.call(path, { method: "PATCH", body });
    const { now } = management.clock;
    management.clock.now = () => new Date(Date.now() + 60_001);
    const late = [
      await given.approve(approver, request),
      await given.post(editor, request, "rebase"),
      await edit({ title: "Late" }),
    ];
    const edited = await edit({ apply_at: null });
    management.clock.now = now;
    expect(late.map(outcome)).toEqual(Array(3).fill([400, "VALIDATION_001"]));
    expect([edited.status, edited.body.apply_at]).toEqual([200, null]);
  });

  it("is stale after its time if something has changed", async () => {
    const { open, change, editor, approver, state } = await given.reviewed({
      ...{ approvals: 1, without_approval: ["off"] },
    });
    const { body: on } = await open({ enabled: true });
    await given.approve(approver, on);
    await given.post(editor, on, "apply");
    const apply_at = new Date(Date.now() + 60_000).toISOString();
    const { body: request } = await open({ rollout_percentage: 5 }, editor, { apply_at });
    await given.approve(approver, request);
    await change({ enabled: false });
    await applyDueAt(management, 60_001);
    expect(await state()).toMatchObject({ enabled: false, rollout_percentage: 100 });
    const read = await editor.call(`/api/v1/change-requests/${request.id}`);
    expect(read.body.status).toBe("stale");
  });
});

describe("a request that affects an unprotected environment", () => {
  it("is applied only by a caller with the right to change that environment", async () => {
    const { production, staging, userId, serverKey, stateChange } = await given.reviewed();
    const { key } = await given.key(production, { user_id: userId, scope: "propose" });
    const changes = [{ ...stateChange({ enabled: true }), environment_id: staging.id }];
    const asked = { method: "POST", key, body: { title: "By a program", changes } };
    const { body: request } = await management.call("/api/v1/change-requests", asked);
    expect(request.needed).toEqual([]);
    const apply = (by: string) =>
      management.call(`/api/v1/change-requests/${request.id}/apply`, { method: "POST", key: by });
    expect(outcome(await apply(key))).toEqual([403, "AUTH_002"]);
    expect((await apply(serverKey)).body.status).toBe("applied");
  });
});
