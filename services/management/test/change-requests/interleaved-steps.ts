import type { Called } from "@halyard/testing";
import type { Witness } from "./approval-model.ts";
import { applyDueAt, type Person, type reviewsOf } from "./review-fixture.ts";

/** Random steps of people against one protected environment, and what they have seen. */
type Given = ReturnType<typeof reviewsOf>;
type Review = Awaited<ReturnType<Given["reviewed"]>>;
type Hash = { id: string; content_hash: string };

type Options = {
  given: Given;
  review: Review;
  flagIds: readonly string[];
  random: () => number;
  management: Parameters<typeof applyDueAt>[0];
};

export async function createSteps({ given, review, flagIds, random, management }: Options) {
  const { editor, approver, second, admin, production, staging, organizationId, project } = review;
  const oneOf = <T>(choices: readonly T[]): T =>
    choices[Math.floor(random() * choices.length)] as T;
  const read = new Map<string, readonly object[]>();
  const approved = new Set<string>();
  const contributors = new Map<string, Set<string>>();
  const hashes: Hash[] = [];
  const statuses = new Map<string, number>();
  const grants = new Map<string, string | undefined>();
  const toggled = new Set<string>();
  for (const { userId } of [approver, second]) grants.set(userId, await grantOf(userId));

  async function grantOf(userId: string): Promise<string> {
    const { body } = await given.asOperator(given.grantsOf(organizationId), {});
    return body.grants.find(
      ({ subject }: { subject: { user_id?: string } }) => subject.user_id === userId,
    ).id;
  }

  const patch = () =>
    oneOf([
      { rollout_percentage: Math.floor(random() * 100) },
      { enabled: random() < 0.5 },
      { enabled: true, rollout_percentage: Math.floor(random() * 100) },
    ]);
  const stateChange = (flagId: string, environmentId = production.id) => ({
    ...{ kind: "state", flag_id: flagId, environment_id: environmentId, patch: patch() },
  });
  const changes = () =>
    oneOf([
      [stateChange(oneOf(flagIds))],
      flagIds.map((id) => stateChange(id)),
      [stateChange(oneOf(flagIds)), stateChange(oneOf(flagIds), staging.id)],
      [{ kind: "audience", audience: "beta", patch: { match: match() } }],
      [{ kind: "protection", environment_id: production.id, protected: { approvals: 1 } }],
    ]);
  const match = () => [[{ attribute: "plan", operator: "equals", value: `plan ${random()}` }]];
  const statePath = () => `/api/v1/flags/${oneOf(flagIds)}/environments/${production.id}`;
  const request = () => oneOf(hashes.slice(-5));

  function note({ status, body }: Called, by?: Person): void {
    if (status >= 300 || body?.content_hash === undefined) return;
    const { id, content_hash } = body;
    read.set(content_hash, body.changes);
    hashes.push({ id, content_hash });
    if (by !== undefined)
      contributors.set(id, new Set([...(contributors.get(id) ?? []), by.userId]));
  }

  async function contribute(by: Person, path: string, method: string, body?: object) {
    const answer = await by.call(path, { method, ...(body && { body }) });
    note(answer, by);
    return answer;
  }

  const pathOf = ({ id }: Hash) => `/api/v1/change-requests/${id}`;
  const author = () => oneOf([editor, editor, second, admin]);

  const onRequest = (run: (hash: Hash) => Promise<Called>) => async () => {
    const hash = request();
    return hash === undefined ? undefined : run(hash);
  };

  async function toggleRole(): Promise<Called | undefined> {
    const { userId } = oneOf([approver, second]);
    if (toggled.has(userId)) return undefined;
    toggled.add(userId);
    const held = grants.get(userId);
    grants.set(userId, undefined);
    if (held !== undefined) return given.withdraw(organizationId, held);
    const subject = { user_id: userId };
    const answer = await given.grant(organizationId, {
      ...{ subject, role: "approver", scope: { project: project.id } },
    });
    grants.set(userId, answer.body.id);
    return answer;
  }

  const steps: Record<string, () => Promise<Called | undefined>> = {
    write: () => editor.call(statePath(), { method: "PATCH", body: patch() }),
    kill: () => editor.call(statePath(), { method: "PATCH", body: { enabled: false } }),
    rollBack: () => editor.call(`${statePath()}/rollback`, { method: "POST" }),
    widen: () =>
      editor.call("/api/v1/audiences/beta", { method: "PATCH", body: { match: match() } }),
    open: () => {
      const apply_at = new Date(Date.now() + 50).toISOString();
      const timed = random() < 0.2 ? { apply_at } : {};
      const body = { title: "A change", changes: changes(), ...timed };
      return contribute(author(), "/api/v1/change-requests", "POST", body);
    },
    edit: onRequest((hash) => contribute(author(), pathOf(hash), "PATCH", { changes: changes() })),
    rebase: onRequest((hash) => contribute(editor, `${pathOf(hash)}/rebase`, "POST")),
    read: onRequest(async (hash) => {
      const answer = await approver.call(pathOf(hash));
      note(answer);
      return answer;
    }),
    approve: onRequest(async (hash) => {
      const by = oneOf([approver, second]);
      const answer = await given.approve(by, hash);
      if (answer.status === 200) approved.add(`${hash.id} ${by.userId} ${hash.content_hash}`);
      return answer;
    }),
    apply: onRequest((hash) => given.post(oneOf([editor, approver, second]), hash, "apply")),
    bypass: onRequest((hash) => given.post(admin, hash, "bypass", { reason: "A drill" })),
    reject: onRequest((hash) => given.post(approver, hash, "reject")),
    withdraw: onRequest((hash) => given.post(editor, hash, "withdraw")),
    due: async () => void (await applyDueAt(management)),
    protect: () => {
      const without_approval = oneOf([[], ["off"], ["off", "rollback"]]);
      return review.protect({ protected: { approvals: oneOf([1, 2]), without_approval } });
    },
    unprotect: () => review.protect({ protected: null, bypass_reason: "A drill" }),
    toggleRole,
  };
  const often = [
    "open",
    "open",
    "read",
    "approve",
    "approve",
    "approve",
    "apply",
    "apply",
    "apply",
  ];
  const usual = ["write", "kill", "edit", "rebase", "rollBack", "due", "protect", "widen"];
  const rare = ["bypass", "reject", "withdraw", "unprotect", "toggleRole"];

  async function take(): Promise<void> {
    const chosen = random();
    const name = oneOf(chosen < 0.6 ? often : chosen < 0.9 ? usual : rare);
    const answer = await steps[name]?.();
    const key = `${name} ${answer?.status ?? "nothing"}`;
    statuses.set(key, (statuses.get(key) ?? 0) + 1);
  }

  /** Takes steps at once. Returns what was seen until they ended. */
  async function takeAtOnce(count: number): Promise<Witness> {
    const before = [...grants].filter(([, held]) => held === undefined).map(([userId]) => userId);
    toggled.clear();
    await Promise.all(Array.from({ length: count }, take));
    const without = new Set(before.filter((userId) => !toggled.has(userId)));
    return { read, approved, contributors, without };
  }

  return { takeAtOnce, statuses };
}
