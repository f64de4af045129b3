import * as contract from "@halyard/contracts";
import {
  type Answer,
  answer,
  createProblem,
  elementTexts,
  isProblem,
  memberText,
  type Problem,
  type RequestFacts,
  textOfBody,
} from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import type { TimeAndIds } from "../access/change-context.ts";
import { authorOf, type KeyPrincipal, type Principal } from "../access/principal.ts";
import { type Change, changeOf, type Propose, type Routes } from "../access/routes.ts";
import { storedVariations } from "../flags/variations.ts";
import type { Writer } from "../outbox/write.ts";
import type { Proposal } from "../protection/proposal.ts";
import { protectionOf } from "../protection/protection.ts";
import { type Applier, applyRequest, recordUnapplied } from "./apply-request.ts";
import { type Place, readPlace } from "./base.ts";
import { type ChangeRequest, listedRequestResource, pathOf } from "./change-request.ts";
import {
  draftOfWrite,
  editRequest,
  mayView,
  noSuchRequest,
  openDraft,
  openNew,
  type RequestAndStanding,
  rebaseRequest,
} from "./request-changes.ts";
import { requestResource } from "./request-resource.ts";
import { findRequest, listRequests, readOpen } from "./request-store.ts";
import { approve, reject, withdraw } from "./review-request.ts";
import { findStale, readStanding, withStandings } from "./standing.ts";

/** Registers the routes of change requests. Only sessions approve, reject and bypass, and the operator's token bypasses. */
export function registerChangeRequestRoutes(routes: Routes, { sql }: { sql: Sql }): void {
  registerReads(routes, sql);
  registerProposing(routes);
  registerReviewing(routes);
  registerApplying(routes);
}

/** Default number of requests of a page. */
const defaultLimit = 20;

const listedByDefault = contract.changeRequestStatuses.filter((status) => status !== "draft");

function registerReads(routes: Routes, sql: Sql): void {
  routes.read(contract.listChangeRequests, async ({ query }, { key }) => {
    const { projectId, environmentOnly } = key;
    const { limit = defaultLimit, before } = query;
    const statuses = query.status?.split(",") ?? listedByDefault;
    const within = { projectId, environmentId: environmentOnly ? key.environmentId : undefined };
    const place = await readPlace(sql, projectId);
    const { staleIds, pending } = await readPending(sql, place, within);
    const filter = { ...within, statuses, staleIds };
    const { requests, more } = await listRequests(sql, filter, { before, limit });
    const listed = await withStandings(sql, requests, place);
    return answer.ok({
      change_requests: listed.map(({ request, standing }) =>
        listedRequestResource(request, standing),
      ),
      next_before: more ? (requests.at(-1)?.id ?? null) : null,
      pending,
    });
  });

  routes.read(contract.getChangeRequest, async ({ params }, principal) => {
    const projectId = principal.kind === "operator" ? null : principal.key.projectId;
    const request = await findRequest(sql, { id: params.requestId, projectId });
    if (request === undefined || !isVisible(principal, request)) return noSuchRequest;
    const place = await readPlace(sql, request.projectId);
    const standing = await readStanding(sql, request, place);
    return answer.ok(await requestResource(sql, { request, standing, place }));
  });
}

/** Counts the requests that have not ended, by their current status. */
async function readPending(sql: Sql, place: Place, within: Parameters<typeof readOpen>[1]) {
  const { open, stale } = await readOpen(sql, within);
  const staleIds = await findStale(sql, place, open);
  const count = (status: contract.ChangeRequestStatus) =>
    open.filter((each) => each.status === status && !staleIds.includes(each.id)).length;
  const pending = {
    ...{ open: count("open"), approved: count("approved") },
    stale: stale + staleIds.length,
  };
  return { staleIds, pending };
}

const isVisible = (principal: Principal, request: ChangeRequest): boolean =>
  principal.kind === "operator" || mayView(principal.key, request);

const answerRequest = async (done: RequestAndStanding, { tx }: Pick<Change, "tx">) =>
  answer.ok(await requestResource(tx, done));

function registerProposing(routes: Routes): void {
  routes.write(contract.createChangeRequest, {
    check: ({ body }) => {
      const proposals = readProposals(body, body.changes);
      return isProblem(proposals) ? proposals : { ...body, proposals };
    },
    run: (change, _, request) => openNew(change, request),
    answer: async (done, { tx }) =>
      answer.created(pathOf(done.request), await requestResource(tx, done)),
  });

  routes.write(contract.updateChangeRequest, {
    check: ({ body }) => {
      const { changes, ...edit } = body;
      if (changes === undefined) return edit;
      const proposals = readProposals(body, changes);
      return isProblem(proposals) ? proposals : { ...edit, proposals };
    },
    run: (change, { params }, edit) => editRequest(change, params.requestId, edit),
    answer: answerRequest,
  });

  routes.write(contract.openChangeRequest, {
    run: (change, { params }) => openDraft(change, params.requestId),
    answer: answerRequest,
  });

  routes.write(contract.rebaseChangeRequest, {
    run: (change, { params }) => rebaseRequest(change, params.requestId),
    answer: answerRequest,
  });
}

function registerReviewing(routes: Routes): void {
  routes.write(contract.approveChangeRequest, {
    run: (change, { params, body }) => approve(change, params.requestId, body.content_hash),
    answer: answerRequest,
  });

  routes.write(contract.rejectChangeRequest, {
    run: (change, { params, body }) => reject(change, params.requestId, body.comment),
    answer: answerRequest,
  });

  routes.write(contract.withdrawChangeRequest, {
    run: (change, { params }) => withdraw(change, params.requestId),
    answer: answerRequest,
  });
}

function registerApplying(routes: Routes): void {
  routes.write(contract.applyChangeRequest, {
    run: (change, { params }) => applyRequest(change, params.requestId, applierOf(change)),
    recordProblem: (change, problem, { params }) =>
      recordUnapplied(change, problem, { id: params.requestId, applier: applierOf(change) }),
    answer: answerRequest,
  });

  routes.write(contract.bypassChangeRequest, {
    run: (change, { params, body }) =>
      applyRequest(change, params.requestId, { ...applierOf(change), bypassReason: body.reason }),
    recordProblem: (change, problem, { params }) =>
      recordUnapplied(change, problem, { id: params.requestId, applier: applierOf(change) }),
    answer: answerRequest,
  });
}

const applierOf = ({ principal }: Change): Extract<Applier, { by: "caller" }> => ({
  ...{ by: "caller", principal, author: authorOf(principal) },
});

/** Reads the changes of a body. The text of the values of variations is that of the body. */
function readProposals(
  body: object,
  changes: readonly contract.RequestedChange[],
): Proposal[] | Problem {
  const texts = elementTexts(memberText(textOfBody(body) ?? "", "changes") ?? "[]");
  const proposals: Proposal[] = [];
  for (const [index, change] of changes.entries()) {
    const proposal = readProposal(change, texts[index] ?? "");
    if (isProblem(proposal))
      return createProblem("VALIDATION_001", `/changes/${index}${proposal.message}`);
    proposals.push(proposal);
  }
  return proposals;
}

function readProposal(change: contract.RequestedChange, text: string): Proposal | Problem {
  switch (change.kind) {
    case "flag_variations": {
      const variations = storedVariations(change.variations, memberText(text, "variations"));
      return isProblem(variations) ? variations : { ...change, variations };
    }
    case "audience_list":
      return { ...change, add: change.add ?? [], remove: change.remove ?? [] };
    case "protection":
      return { ...change, protected: change.protected && protectionOf(change.protected) };
    case "state":
    case "flag_deletion":
    case "audience":
      return change;
  }
}

/** Returns the function that makes a change request of a refused write, and the response to the write. */
export function createPropose({ writer, ...timeAndIds }: TimeAndIds & { writer: Writer }): Propose {
  return async (principal: KeyPrincipal, refused, request) => {
    const isOpened = prefersAsync(request);
    const done = await writer<RequestAndStanding & { resource: contract.ChangeRequest }>(
      async (write) => {
        const change = changeOf(write, principal, timeAndIds);
        const made = await draftOfWrite(change, refused, { isOpened });
        if (isProblem(made)) return made;
        return { ...made, resource: await requestResource(write.tx, made) };
      },
    );
    if (isProblem(done)) return done;
    const location = pathOf(done.request);
    if (isOpened) return { status: 202, body: done.resource, headers: { location } } as Answer;
    const advice =
      "A draft of it is at Location. Open it, or repeat the request with `Prefer: respond-async`.";
    return createProblem(refused.rejected, `${refused.message} ${advice}`, { location });
  };
}

/** Returns whether a client prefers an open change request to an error (RFC 7240). */
function prefersAsync({ headers: { prefer } }: RequestFacts): boolean {
  const preferences = Array.isArray(prefer) ? prefer : (prefer?.split(",") ?? []);
  return preferences.some((each) => /^\s*respond-async\s*(?:;|$)/i.test(each));
}
