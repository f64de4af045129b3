import { setImmediate as nextTurn } from "node:timers/promises";
import type { RouteContract } from "@halyard/contracts";
import {
  type Answer,
  type App,
  type Awaitable,
  isProblem,
  type Problem,
  type RequestFacts,
  type RouteInput,
  registerRoute,
} from "@halyard/http";
import { createAnswerOnce } from "@halyard/idempotency";
import type { z } from "zod";
import type { Write, Writer } from "../outbox/write.ts";
import { type ApprovalNeeded, isApprovalNeeded } from "../protection/protection.ts";
import { type Cause, type ChangeContext, readContext, type TimeAndIds } from "./change-context.ts";
import type { Costs } from "./costs.ts";
import {
  type Authenticate,
  type AuthenticatedRoute,
  authorOf,
  type BearerAccess,
  type KeyPrincipal,
  type Principal,
  type PrincipalOf,
} from "./principal.ts";
import { isLarge } from "./request-cost.ts";

/** A write that a request makes. */
export type Change<Caller extends Principal = Principal> = Write &
  TimeAndIds & {
    principal: Caller;
    /** Reads the actor, and returns actor, cause (default "manual") and the time of this call. */
    context: (cause?: Cause) => Promise<ChangeContext>;
  };

/** The steps of a write, in this order. `check` runs before the transaction; a problem of `run` rolls it back. */
type WriteSteps<Input, Caller extends Principal, Checked, Done extends object> = {
  /**
   * Rejects requests without the database, or returns the checked body. It can be more exact than the parsed one, which
   * loses the text of numbers, so it identifies a request with an `Idempotency-Key`.
   */
  check?: (input: Input) => Checked | Problem;
  /** The use case, in the transaction. */
  run: (change: Change<Caller>, input: Input, checked: Checked) => Promise<Done | Problem>;
  answer: (done: Done, write: Write) => Awaitable<Answer>;
  /** Records a problem, in a second transaction after the rollback. */
  recordProblem?: (change: Change<Caller>, problem: Problem, input: Input) => Promise<object>;
};

/** Runs a use case in the transaction of a write. */
type RunWrite = <Done extends object>(
  run: (change: Change<KeyPrincipal>) => Promise<Done | Problem>,
) => Promise<Done | Problem>;

export type Routes = ReturnType<typeof createRoutes>;

type RoutesOptions = TimeAndIds & {
  app: App;
  authenticationFor: (route: AuthenticatedRoute) => Authenticate;
  writer: Writer;
  costs: Costs;
  randomBytes: (size: number) => Buffer;
  /** Makes a change request of a write that needs an approval. Returns the response to the write. */
  propose: Propose;
};

export type Propose = (
  principal: KeyPrincipal,
  refused: ApprovalNeeded,
  request: RequestFacts,
) => Promise<Answer | Problem>;

/**
 * Registers routes according to their contracts. A contract defines the access, and whether a request that is repeated
 * with the same `Idempotency-Key` gets the stored response; `run` is then not called.
 */
export function createRoutes(options: RoutesOptions) {
  const { app, writer, costs } = options;
  const answerOnce = createAnswerOnce(options.randomBytes);
  const authenticationFor = <A extends BearerAccess>(route: AuthenticatedRoute & { access: A }) =>
    options.authenticationFor(route) as Authenticate<PrincipalOf<A>>;

  function read<
    P extends z.ZodObject,
    Q extends z.ZodObject,
    B extends z.ZodType,
    A extends BearerAccess,
  >(
    contract: RouteContract<P, Q, B, A>,
    handle: (input: RouteInput<P, Q, B>, principal: PrincipalOf<A>) => Awaitable<Answer | Problem>,
    { isCostly = false }: { isCostly?: boolean } = {},
  ): void {
    registerRoute(app, contract, {
      authenticate: authenticationFor(contract),
      admitBody: (input, principal) =>
        costs.admit(input, principal, isCostly ? "costly_read" : "read"),
      handle,
    });
  }

  function write<
    P extends z.ZodObject,
    Q extends z.ZodObject,
    B extends z.ZodType,
    A extends BearerAccess,
    Done extends object,
    Checked extends object | undefined = undefined,
  >(
    contract: RouteContract<P, Q, B, A>,
    steps: WriteSteps<RouteInput<P, Q, B>, PrincipalOf<A>, Checked, Done>,
  ): void {
    const { operationId, idempotent = false } = contract;

    async function handle(input: RouteInput<P, Q, B>, principal: PrincipalOf<A>) {
      const pause = pauseOf(input.request);
      await pause();
      const checked = steps.check?.(input);
      if (checked !== undefined && isProblem(checked)) return checked;
      await pause();
      const work = (write: Write): Promise<Answer | Problem> => {
        const run = async () => {
          const change = changeOf(write, principal, options);
          const done = await steps.run(change, input, checked as Checked);
          await pause();
          return isProblem(done) ? done : steps.answer(done, write);
        };
        if (!idempotent) return run();
        const { params, request, body } = input;
        const asked = { operationId, params, request, body: checked ?? body };
        return answerOnce(write.tx, { ...askerOf(principal), ...asked }, run);
      };
      const given = await writer(work, (bytes) => costs.chargeMessages(input, principal, bytes));
      if (!isProblem(given)) return given;
      return afterRollback(options, steps.recordProblem, { principal, input, problem: given });
    }

    registerRoute(app, contract, {
      authenticate: authenticationFor(contract),
      admitBody: (input, principal) => costs.admit(input, principal, "change"),
      handle,
    });
  }

  return { read, write, receive: createReceive({ ...options, authenticationFor }) };
}

/**
 * Records the outcome of a problem, whose transaction was rolled back. If the write needs an approval, makes a change request
 * of it. Returns the response.
 */
async function afterRollback<Caller extends Principal, Input extends { request: RequestFacts }>(
  { writer, propose, ...timeAndIds }: Pick<RoutesOptions, "writer" | "propose" | keyof TimeAndIds>,
  record: ((change: Change<Caller>, problem: Problem, input: Input) => Promise<object>) | undefined,
  { principal, input, problem }: { principal: Caller; input: Input; problem: Problem },
): Promise<Answer | Problem> {
  if (record !== undefined)
    await writer((write) => record(changeOf(write, principal, timeAndIds), problem, input));
  if (principal.kind === "operator" || !isApprovalNeeded(problem)) return problem;
  return problem.proposals.length === 0 ? problem : propose(principal, problem, input.request);
}

/**
 * Creates the function that registers a route that receives a stream. `begin` bounds the number of concurrent streams, in
 * place of the turns of organizations. `receive` reads the stream, charges its entries as they arrive, and can then run a
 * use case in a transaction.
 */
function createReceive({
  app,
  writer,
  costs,
  authenticationFor,
  now,
  newId,
}: Omit<RoutesOptions, "authenticationFor" | "propose"> & {
  authenticationFor: (
    route: AuthenticatedRoute & { access: "server_key" },
  ) => Authenticate<KeyPrincipal>;
}) {
  return function receive<P extends z.ZodObject, Q extends z.ZodObject>(
    contract: RouteContract<P, Q, z.ZodUndefined, "server_key">,
    steps: {
      begin: (principal: KeyPrincipal) => (() => void) | Problem;
      receive: (
        input: RouteInput<P, Q, z.ZodUndefined>,
        principal: KeyPrincipal,
        means: { runWrite: RunWrite; chargeEntries: (bytes: number) => void },
      ) => Promise<Answer | Problem>;
    },
  ): void {
    registerRoute(app, contract, {
      authenticate: authenticationFor(contract),
      admitBody: (_, principal: KeyPrincipal) => steps.begin(principal),
      handle: (input, principal: KeyPrincipal) =>
        steps.receive(input, principal, {
          chargeEntries: (bytes) => costs.chargeEntries(principal, bytes),
          runWrite: (run) =>
            writer(
              (write) => run(changeOf(write, principal, { now, newId })),
              (bytes) => costs.chargeMessages(input, principal, bytes),
            ),
        }),
    });
  };
}

/** Returns who may get a stored response again. */
function askerOf(principal: Principal): { caller: string; sessionSecret?: string | undefined } {
  if (principal.kind === "operator") return { caller: "operator" };
  const { id, session } = principal.key;
  return { caller: id, sessionSecret: session?.secret };
}

/** Lets other requests run between the steps of a large request. Each step takes tens of milliseconds. */
const pauseOf = ({ headers }: RequestFacts) =>
  isLarge(headers) ? () => nextTurn() : () => undefined;

export function changeOf<Caller extends Principal>(
  write: Write,
  principal: Caller,
  timeAndIds: TimeAndIds,
): Change<Caller> {
  const author = authorOf(principal);
  const context = (cause: Cause = "manual") => readContext(write.tx, { author, cause }, timeAndIds);
  return { ...write, ...timeAndIds, principal, context };
}
