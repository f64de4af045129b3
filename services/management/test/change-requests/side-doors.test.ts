import { routes } from "@halyard/contracts";
import type { Called, CallOptions } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { openManagement, operatorToken } from "../management-fixture.ts";
import { reviewsOf } from "./review-fixture.ts";

/**
 * Every route of the API against a protected environment. The table is written by hand. Each route that can change what
 * the environment answers is called with every kind of credential, and the tables of the database are compared.
 */
const management = await openManagement({ groupsOrganizations: "all" });
afterAll(() => management.close());
const given = reviewsOf(management);

type House = Awaited<ReturnType<typeof openHouse>>;
type Request = [method: string, path: string, body?: unknown, options?: CallOptions];

/** A route that can change what an environment answers, with the requests that would change it. */
type Door = {
  send: (house: House) => readonly Request[];
  /** The error code or the status of each response to a key with the scope `write`, and to an editor. */
  answers?: readonly (string | number)[];
  /** The credentials whose request is a permitted bypass. */
  permitted?: readonly string[];
};

/** The route changes nothing that an environment answers. */
const harmless = "harmless";
/** The route evaluates flags, and does not write to the database of management. */
const edge = "edge: reads the snapshot";
/** Due changes are made by management, which checks the protection then. */
const scheduler = "scheduler: sends due changes to management";
const metering = "usage-metering: counts";
const dispatcher = "webhook-dispatcher: delivers";

const otherMatch = { match: [[{ attribute: "id", operator: "in", value: ["eve"] }]] };

const table: Readonly<Record<string, Door | string>> = {
  ...{ sdkGetFlags: edge, sdkPostFlags: edge, sdkGetValues: edge, sdkPostValues: edge },
  ...{ sdkGetEvaluate: edge, sdkPostEvaluate: edge, sdkStream: edge, sdkRuleset: edge },
  ...{ sdkRulesetStream: edge, sdkList: edge, sdkReportUsage: edge },
  ...{ ofrepEvaluateFlags: edge, ofrepEvaluateFlag: edge, ofrepStream: edge },
  // The key is not used: a state never refers to an audience that does not exist.
  createAudience: harmless,
  ...{ listAudiences: harmless, getAudience: harmless, getAudienceHistory: harmless },
  ...{ previewAudience: harmless, lookUpAudienceMember: harmless },
  updateAudience: {
    answers: ["APPROVAL_001", "APPROVAL_001"],
    send: () => [
      ["PATCH", "/api/v1/audiences/beta", otherMatch],
      ["PATCH", "/api/v1/audiences/beta", { list: null }],
    ],
  },
  deleteAudience: { answers: ["CONFLICT_001"], send: () => [["DELETE", "/api/v1/audiences/beta"]] },
  replaceAudienceList: {
    answers: ["APPROVAL_001"],
    send: () => [
      [
        ...(["PUT", "/api/v1/audiences/beta/list", undefined] as const),
        { text: "eve\nmallory", headers: { "content-type": "text/csv" } },
      ],
    ],
  },
  changeAudienceList: {
    answers: ["APPROVAL_001"],
    send: () => [["PATCH", "/api/v1/audiences/beta/list", { add: ["mallory"] }]],
  },
  createFlag: {
    answers: ["APPROVAL_001", "APPROVAL_001"],
    send: () => [
      ["POST", "/api/v1/flags", { key: "new", name: "New", enabled: true }],
      [
        ...(["POST", "/api/v1/flags"] as const),
        { key: "new", name: "New", enabled: true, requires: [{ flag: "checkout", is: "on" }] },
      ],
    ],
  },
  ...{ listFlags: harmless, getFlag: harmless, getDependents: harmless, explainFlag: harmless },
  updateFlag: {
    answers: ["APPROVAL_001", "APPROVAL_001", "APPROVAL_001"],
    send: ({ flag, color }) => [
      ["PATCH", `/api/v1/flags/${flag.id}`, { enabled: false }],
      ["PATCH", `/api/v1/flags/${flag.id}`, { name: "Renamed", rollout_percentage: 1 }],
      ["PATCH", `/api/v1/flags/${color.id}`, { variations: colors("#f00") }],
    ],
  },
  updateFlags: {
    answers: [200],
    send: ({ flag, color }) => [
      [
        ...(["POST", "/api/v1/flags/bulk"] as const),
        { flag_ids: [flag.id, color.id], set: { archived: true, add_tags: ["old"] } },
      ],
    ],
  },
  deleteFlag: {
    answers: ["CONFLICT_001", "APPROVAL_001"],
    send: ({ flag, color }) => [
      ["DELETE", `/api/v1/flags/${flag.id}`],
      ["DELETE", `/api/v1/flags/${color.id}`],
    ],
  },
  getFlagState: harmless,
  updateFlagState: {
    answers: [
      "APPROVAL_001",
      "APPROVAL_001",
      "APPROVAL_001",
      "APPROVAL_001",
      "APPROVAL_001",
      "APPROVAL_001",
      202,
    ],
    send: ({ statePath, colorPath }) => [
      ["PATCH", statePath, { enabled: false }],
      ["PATCH", statePath, { targeting_rules: [] }],
      ["PATCH", statePath, { bucket_seed: "another" }],
      ["PATCH", statePath, { requires: [{ flag: "payments", is: "off" }] }],
      ["PATCH", colorPath, { serve: { variation: "red" } }],
      ["PATCH", colorPath, { off_variation: "blue" }],
      ["PATCH", statePath, { rollout_percentage: 1 }, { headers: { prefer: "respond-async" } }],
    ],
  },
  ...{ setSchedule: scheduler, clearSchedule: scheduler },
  ...{ getSchedule: scheduler, listSchedules: scheduler },
  getHistory: harmless,
  rollBack: {
    answers: ["APPROVAL_001"],
    send: ({ statePath }) => [["POST", `${statePath}/rollback`]],
  },
  createChangeRequest: {
    send: ({ stateChange }) => [
      [
        ...(["POST", "/api/v1/change-requests"] as const),
        { title: "Mine", changes: [stateChange({ rollout_percentage: 2 })] },
      ],
    ],
  },
  ...{ listChangeRequests: harmless, getChangeRequest: harmless },
  updateChangeRequest: {
    send: ({ request, stateChange }) => [
      ["PATCH", requestPath(request), { changes: [stateChange({ rollout_percentage: 3 })] }],
    ],
  },
  openChangeRequest: { send: ({ request }) => [["POST", `${requestPath(request)}/open`]] },
  approveChangeRequest: {
    send: ({ approved }) => [
      ["POST", `${requestPath(approved)}/approve`, { content_hash: approved.content_hash }],
    ],
  },
  rejectChangeRequest: { send: ({ rejected }) => [["POST", `${requestPath(rejected)}/reject`]] },
  withdrawChangeRequest: {
    send: ({ withdrawn }) => [["POST", `${requestPath(withdrawn)}/withdraw`]],
  },
  rebaseChangeRequest: { send: ({ request }) => [["POST", `${requestPath(request)}/rebase`]] },
  applyChangeRequest: {
    answers: ["APPROVAL_001"],
    send: ({ unapproved }) => [["POST", `${requestPath(unapproved)}/apply`]],
  },
  bypassChangeRequest: {
    send: ({ unapproved }) => [["POST", `${requestPath(unapproved)}/bypass`, { reason: "Mine" }]],
    permitted: ["session of admin", "session of owner", "operator"],
  },
  ...{ listChanges: harmless, streamChanges: harmless, listOrganizationChanges: harmless },
  ...{ createWebhook: dispatcher, listWebhooks: dispatcher, getWebhook: dispatcher },
  ...{ updateWebhook: dispatcher, deleteWebhook: dispatcher, testWebhook: dispatcher },
  ...{ listDeliveries: dispatcher, getDelivery: dispatcher, redeliver: dispatcher },
  listOperators: harmless,
  ...{ getUsage: metering, listUsageDays: metering, listFlagTraffic: metering },
  ...{ listReaders: metering, getFlagUsage: metering },
  // A new environment is not protected, and has states of its own.
  createEnvironment: harmless,
  ...{ listEnvironments: harmless, getEnvironment: harmless },
  updateEnvironment: {
    send: ({ protectedPath }) => [
      ["PATCH", protectedPath, { protected: null }],
      ["PATCH", protectedPath, { protected: { approvals: 1 } }],
      ["PATCH", protectedPath, { protected: { approvals: 3, self_approval: true } }],
      ["PATCH", protectedPath, { protected: { approvals: 3, without_approval: ["off"] } }],
    ],
  },
  deleteEnvironment: {
    send: ({ protectedPath, production }) => [
      ["DELETE", `${protectedPath}?confirm=${production.id}`],
    ],
  },
  getMe: harmless,
  // Keys decide who asks, and not what is answered.
  ...{ issueKey: harmless, rotateKey: harmless, revokeKey: harmless },
  ...{ listKeys: harmless, getKey: harmless, getStatus: harmless, listPlans: harmless },
  ...{ createOrganization: harmless, listOrganizations: harmless, getOrganization: harmless },
  // The plan limits requests and sizes.
  updateOrganization: harmless,
  deleteOrganization: {
    send: ({ organizationId }) => [
      ["DELETE", `/api/v1/organizations/${organizationId}?confirm=${organizationId}`],
    ],
  },
  ...{ createUser: harmless, listUsers: harmless, getUser: harmless, updateUser: harmless },
  deleteUser: harmless,
  ...{ createProject: harmless, listProjects: harmless, getProject: harmless },
  updateProject: harmless,
  deleteProject: {
    send: ({ organizationId, project }) => [
      [
        ...(["DELETE"] as const),
        `/api/v1/organizations/${organizationId}/projects/${project.id}?confirm=${project.id}`,
      ],
    ],
  },
  ...{ getSession: harmless, listSessions: harmless, endSessions: harmless },
  ...{ listPasskeys: harmless, deletePasskey: harmless, createSignInLink: harmless },
  ...{ invite: harmless, listInvitations: harmless, withdrawInvitation: harmless },
  // Roles decide who approves. An approval counts while the role holds.
  ...{ acceptInvitation: harmless, createGrant: harmless, listGrants: harmless },
  ...{ deleteGrant: harmless, endUserSessions: harmless, unlinkUser: harmless },
};

const nameOf = (service: string) => (service === "sdk-edge" ? "edge" : service);

const requestPath = ({ id }: { id: string }) => `/api/v1/change-requests/${id}`;

const colors = (blue: string) => [
  { key: "blue", value: blue },
  { key: "red", value: "#f00" },
];

/** Creates a protected environment with flags and an audience, pending requests, and callers of every kind. */
async function openHouse() {
  let color = { id: "" };
  const house = await given.reviewed({ approvals: 2 }, async ({ call, flagId, statePath }) => {
    await call("POST", "/api/v1/audiences", { key: "beta", name: "Beta" });
    await call("PATCH", "/api/v1/audiences/beta/list", { add: ["ada", "grace"] });
    await call("POST", "/api/v1/flags", { key: "payments", name: "Payments" });
    const typed = { value_type: "string", variations: colors("#00f") };
    color = await call("POST", "/api/v1/flags", { key: "color", name: "Color", ...typed });
    const requires = [{ flag: "checkout", is: "on" }];
    await call("PATCH", `/api/v1/flags/${color.id}`, { enabled: true, requires });
    const targeting_rules = [{ conditions: [{ audience: "beta" }] }];
    await call("PATCH", statePath, { rollout_percentage: 50, targeting_rules });
    await call("PATCH", `/api/v1/flags/${flagId}`, { enabled: true });
    await call("PATCH", statePath, { rollout_percentage: 40 });
  });
  const { organizationId, production, project, editor, open } = house;
  const opened = async (percentage: number) =>
    (await open({ rollout_percentage: percentage }, editor)).body;
  const requests = {
    ...{ request: await opened(10), unapproved: await opened(11), approved: await opened(12) },
    ...{ rejected: await opened(13), withdrawn: await opened(14) },
  };
  const { body: service } = await given.asOperator(
    `/api/v1/organizations/${organizationId}/users`,
    {
      ...{ method: "POST", body: { email: `ci-${organizationId}@example.com`, kind: "service" } },
    },
  );
  const owner = await house.person({ role: "owner", scope: { organization: organizationId } });
  const key = async (body: object) => (await given.key(production, { ...body })).key;
  const byKey = (bearer: string) => (path: string, options: CallOptions) =>
    management.call(path, { ...options, key: bearer });
  const { userId } = house;
  const callers: Record<string, (path: string, options: CallOptions) => Promise<Called>> = {
    "key from before the protection": byKey(house.serverKey),
    "key with the scope write": byKey(await key({ user_id: userId })),
    "key with the scope propose": byKey(await key({ user_id: userId, scope: "propose" })),
    "key of one environment": byKey(await key({ user_id: userId, environment_only: true })),
    "key of a service user": byKey(await key({ user_id: service.id })),
    "session of editor": editor.call,
    "session of approver": house.approver.call,
    "session of admin": house.admin.call,
    "session of owner": owner.call,
    operator: byKey(operatorToken),
  };
  const colorPath = `/api/v1/flags/${color.id}/environments/${production.id}`;
  return { ...house, project, color, colorPath, ...requests, callers };
}

/** Reads everything that decides what an environment answers. */
async function answersOf({ production, project }: House) {
  const [environment] = await management.sql`
    select protection from environments where id = ${production.id}`;
  const flags = await management.sql`
    select flag.key, flag.value_type, flag.variations, state.content, state.version
    from flags as flag
    join environments as environment on environment.id = ${production.id}
    join flag_states as state on state.flag_id = flag.id and state.environment_id = environment.id
    where flag.project_id = ${project.id}
    order by flag.key`;
  const audiences = await management.sql`
    select audience.key, audience.match, audience.list_attribute, audience.list_count,
      array(select member.member from audience_members as member
        where member.list_id = audience.list_id order by member.member) as members,
      array(select reference.flag_id::text from flag_references as reference
        where reference.environment_id = ${production.id} and reference.kind = 'audience'
          and reference.key = audience.key order by 1) as uses
    from audiences as audience where audience.project_id = ${project.id}
    order by audience.key`;
  return { environment, flags: [...flags], audiences: [...audiences] };
}

/** The credentials that change states in an environment without a protection. */
const editing = [
  "key from before the protection",
  "key with the scope write",
  "key of a service user",
  "session of editor",
];

const notUnderstood = new Set([400, 404, 412, 415]);

const doors = Object.entries(table).flatMap(([operationId, row]) =>
  typeof row === "string" ? [] : [[operationId, row] as const],
);

describe("a protected environment", () => {
  let house: House;
  beforeAll(async () => {
    house = await openHouse();
  });

  it("is compared with every route of the API", () => {
    expect(Object.keys(table).sort()).toEqual(routes.map(({ operationId }) => operationId).sort());
    const elsewhere = routes.filter(({ operationId, service }) => {
      const row = table[operationId];
      return typeof row === "string" && row !== harmless && !row.startsWith(nameOf(service));
    });
    expect(elsewhere).toEqual([]);
  });

  it.each(doors)("answers the same after %s with any credential", async (_, door) => {
    const before = await answersOf(house);
    expect([before.flags.length, before.audiences.length]).toEqual([3, 1]);
    const done: [string, number][] = [];
    const answered: [string, string | number][] = [];
    for (const [name, call] of Object.entries(house.callers)) {
      if (door.permitted?.includes(name)) continue;
      for (const [method, path, body, options] of door.send(house)) {
        const answer = await call(path, { method, body, ...options });
        done.push([name, answer.status]);
        if (editing.includes(name))
          answered.push([name, answer.body?.error?.code ?? answer.status]);
        expect([name, method, path, await answersOf(house)]).toEqual([name, method, path, before]);
      }
    }
    // A request that is not understood would change nothing anywhere.
    expect(done.filter(([, status]) => status >= 500 || notUnderstood.has(status))).toEqual([]);
    if (door.answers !== undefined)
      expect(answered).toEqual(
        editing.flatMap((name) => door.answers?.map((answer) => [name, answer] as const) ?? []),
      );
  });
});
