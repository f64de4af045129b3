import type { DirectoryKey } from "@halyard/api-keys";
import {
  environmentHeader,
  type Need,
  needOf,
  type Role,
  type RouteContract,
  recentSignInMinutes,
  type SignInMethod,
  signedIn,
} from "@halyard/contracts";
import {
  type Awaitable,
  createProblem,
  isProblem,
  type Problem,
  type RequestFacts,
} from "@halyard/http";
import type { LiveSession, MemberUser, PeopleDirectory } from "./people-directory.ts";
import type { FindPlace } from "./places.ts";
import { includes, type Place, type Rights, rightsOf, rightsOfKey } from "./rights.ts";
import { readSessionCookie, type SessionCookie, sessionCookieName } from "./session-cookie.ts";

/**
 * The caller of a request: an API key, or a session. A session acts like a server key of its user, in the environment
 * that the request names.
 */
export type Caller = DirectoryKey & {
  via: "key" | SignInMethod;
  rights: Rights;
  /** Absent for a key. */
  session?: FoundSession;
};

/** A session with the secret of its cookie. */
export type FoundSession = LiveSession & { secret: string };

/** Sources of callers: the directories of a service, or the tables of management. */
export type People = {
  /** The address is that of the request. */
  session(
    cookie: SessionCookie,
    nowMs: number,
    address: string,
  ): Awaitable<LiveSession | undefined>;
  memberOf(session: LiveSession, organizationId: string): Awaitable<MemberUser | undefined>;
  user: (organizationId: string, userId: string) => Awaitable<ReturnType<PeopleDirectory["user"]>>;
  places: {
    environment(id: string): Awaitable<ReturnType<FindPlace["environment"]>>;
    project(id: string): Awaitable<ReturnType<FindPlace["project"]>>;
  };
};

type Contract = Pick<RouteContract, "operationId" | "method">;

export type Callers = {
  /** Returns the caller of a key that was verified, or the problem of a role that is missing. */
  ofKey(contract: Contract, key: DirectoryKey, request: RequestFacts): Promise<Caller | Problem>;
  /** Returns the session of a request; undefined without a valid one. */
  findSession(request: Pick<RequestFacts, "headers" | "ip">): Promise<FoundSession | undefined>;
  /** Returns whether a request has the cookie of a session, which may be invalid. */
  hasCookie(request: Pick<RequestFacts, "headers">): boolean;
  /** Returns the caller of a session, or the problem of a role that is missing. */
  ofSession(
    contract: Contract,
    found: FoundSession,
    request: RequestFacts,
  ): Promise<Caller | Problem>;
  /** Returns whether the caller of an open stream still has the role of the route, and a session that has not ended. */
  mayContinue(contract: Contract, caller: Caller, request: RequestFacts): Promise<boolean>;
};

/** Ignores cookies without `PUBLIC_URL`, because there are no sessions then. */
export function createCallers(options: {
  people: People;
  publicUrl: URL | undefined;
  nowMs: () => number;
}): Callers {
  const { people, publicUrl, nowMs } = options;
  const cookieOf = ({ headers }: Pick<RequestFacts, "headers">) =>
    publicUrl === undefined || isBearer(headers.authorization)
      ? undefined
      : readSessionCookie(headers.cookie, sessionCookieName(publicUrl));
  const callers: Callers = {
    async ofKey(contract, key, request) {
      const user = await people.user(key.organizationId, key.userId);
      const rights = rightsOfKey(key.scope, user);
      const caller: Caller = { ...key, via: "key", rights };
      const need = needOf(contract);
      if (need === undefined || need === signedIn || key.kind !== "server") return caller;
      return checkRole(need, caller, placeOf(caller, request)) ?? caller;
    },
    async findSession(request) {
      const cookie = cookieOf(request);
      const session = cookie && (await people.session(cookie, nowMs(), request.ip));
      return session && { ...session, secret: cookie.secret };
    },
    hasCookie: (request) => cookieOf(request) !== undefined,
    async ofSession(contract, session, request) {
      const isChange = contract.method !== "GET";
      if (isChange && !(publicUrl && isSameOrigin(request.headers, publicUrl))) return otherOrigin;
      const need = needOf(contract);
      if (need === undefined) return closedToPeople;
      const place = await requestedPlace(people.places, need, request);
      if (isProblem(place)) return place;
      const member = place.organizationId
        ? await people.memberOf(session, place.organizationId)
        : { organizationId: "", userId: "", grants: [] };
      if (member === undefined) return notThere(place);
      const caller = callerOfSession(session, member, place);
      if (need === signedIn) return caller;
      return (
        checkRole(need, caller, placeOf(caller, request)) ??
        (need.recent === true ? checkRecent(session, nowMs()) : undefined) ??
        caller
      );
    },
    async mayContinue(contract, caller, request) {
      if (caller.session === undefined)
        return !isProblem(await callers.ofKey(contract, caller, request));
      const session = await callers.findSession(request);
      return (
        session !== undefined && !isProblem(await callers.ofSession(contract, session, request))
      );
    },
  };
  return callers;
}

/** `Authorization: Bearer` outranks a cookie, and other schemes are those of proxies in front. */
const isBearer = (header: string | undefined) => /^bearer\b/i.test(header ?? "");

type RequestedPlace = { organizationId: string; projectId: string; environmentId: string };

function callerOfSession(session: FoundSession, member: MemberUser, place: RequestedPlace): Caller {
  const { grants, userId } = member;
  return {
    ...place,
    ...{ id: session.id, kind: "server", userId, environmentOnly: false, scope: "write" },
    expiresAtMs: session.expiresAtMs,
    via: session.via,
    session,
    rights: rightsOf(grants),
  };
}

const nowhere: RequestedPlace = { organizationId: "", projectId: "", environmentId: "" };
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Returns where a request by session acts: the place in its path, or else the environment in its header. */
async function requestedPlace(
  places: People["places"],
  need: Need | typeof signedIn,
  { params = {}, headers }: RequestFacts,
): Promise<RequestedPlace | Problem> {
  const organizationId = params.organizationId?.toLowerCase();
  const projectId = params.projectId?.toLowerCase();
  if (organizationId !== undefined)
    return { ...nowhere, organizationId, projectId: projectId ?? "" };
  const named = headers[environmentHeader.toLowerCase()];
  const given = params.environmentId ?? params.envId ?? (typeof named === "string" ? named : "");
  const environmentId = given.toLowerCase();
  if (projectId !== undefined) {
    const project = await places.project(projectId);
    return project === undefined ? noSuchProject : { ...project, projectId, environmentId };
  }
  if (need === signedIn && given === "") return nowhere;
  if (!uuid.test(environmentId)) return params.envId === undefined ? noEnvironment : noSuchPlace;
  const environment = await places.environment(environmentId);
  return environment === undefined ? noSuchPlace : { ...environment, environmentId };
}

function placeOf(caller: DirectoryKey, { params = {} }: RequestFacts): Place {
  const inPath = params.environmentId ?? params.envId;
  return {
    projectId: params.projectId?.toLowerCase() ?? caller.projectId,
    environmentId: inPath?.toLowerCase() ?? caller.environmentId,
  };
}

function checkRole(need: Need, { rights }: Caller, place: Place): Problem | undefined {
  const held = heldAt(need, rights, place);
  if (includes(held, need.role)) return undefined;
  // Callers with any role in the project, or in the organization, may learn that the resource exists.
  const seen = held ?? rights.within(place.projectId ?? "");
  const hidden = need.at === "organization" || need.at === "anywhere" ? rights.anywhere() : seen;
  if (hidden === undefined) return noSuchPlace;
  return missingRole(need, held);
}

/** Returns the problem of a caller whose role does not suffice. The message names the missing role. */
export function missingRole(
  { role, at }: Pick<Need, "role" | "at">,
  held: Role | undefined,
): Problem {
  return createProblem(
    "AUTH_002",
    `This needs the role ${role} ${placeNames[at]}; yours is ${held ?? "none"}.`,
  );
}

function heldAt({ at }: Need, rights: Rights, place: Place): Role | undefined {
  switch (at) {
    case "environment":
      return rights.at(place);
    case "project":
      return rights.at({ projectId: place.projectId });
    case "any_environment":
      return rights.within(place.projectId ?? "");
    case "organization":
      return rights.at({});
    case "anywhere":
      return rights.anywhere();
  }
}

const placeNames: Readonly<Record<Need["at"], string>> = {
  environment: "in this environment",
  project: "in the whole project",
  any_environment: "in the project or one of its environments",
  organization: "in the whole organization",
  anywhere: "somewhere in the organization",
};

/** Returns the problem of a sign-in that is too old for a change of who may sign in. */
export function checkRecent(
  { confirmedAtMs }: Pick<LiveSession, "confirmedAtMs">,
  nowMs: number,
): Problem | undefined {
  return nowMs - confirmedAtMs <= recentSignInMinutes * 60_000 ? undefined : signInTooOld;
}

/**
 * Returns whether a page of this installation has sent a request. Browsers send one of both headers with every request
 * that changes something. A request without both is rejected.
 */
export function isSameOrigin(
  { origin, "sec-fetch-site": site }: RequestFacts["headers"],
  publicUrl: URL,
): boolean {
  return origin === undefined ? site === "same-origin" : origin === publicUrl.origin;
}

const closedToPeople = createProblem(
  "AUTH_002",
  "This needs an API key or the operator's token, not a sign-in.",
);
const otherOrigin = createProblem(
  "AUTH_002",
  "A change by session needs the Origin of this installation, which PUBLIC_URL names.",
);
const signInTooOld = createProblem(
  "AUTH_003",
  `Your sign-in is older than ${recentSignInMinutes} minutes. Confirm it, and repeat the request.`,
);
const noEnvironment = createProblem(
  "VALIDATION_001",
  `The header ${environmentHeader} must be the id of an environment.`,
);
const noSuchPlace = createProblem("NOT_FOUND_001", "There is nothing here that you may view.");
const noSuchProject = createProblem("NOT_FOUND_001", "There is no such project.");
const notThere = ({ projectId }: RequestedPlace) =>
  projectId === "" ? noSuchPlace : noSuchProject;
