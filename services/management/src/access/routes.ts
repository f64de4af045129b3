import type { RouteContract } from "@halyard/contracts";
import {
  type Answer,
  type App,
  type Awaitable,
  isProblem,
  type Problem,
  type RouteInput,
  registerRoute,
} from "@halyard/http";
import { createAnswerOnce } from "@halyard/idempotency";
import type { z } from "zod";
import type { Write, Writer } from "../outbox/write.ts";
import { type Cause, type ChangeContext, readContext, type TimeAndIds } from "./change-context.ts";
import {
  type Authenticate,
  authorOf,
  type BearerAccess,
  type Principal,
  type PrincipalOf,
} from "./principal.ts";
import { costOfBytes, isLarge } from "./request-cost.ts";
import type { Turns } from "./turns.ts";

/** A write that a request makes. */
export type Change<Caller extends Principal = Principal> = Write &
  TimeAndIds & {
    principal: Caller;
    /** Reads the actor, and returns actor, cause (default "manual") and the time of this call. */
    context: (cause?: Cause) => Promise<ChangeContext>;
  };

/** The steps of a write, in this order. `check` runs before the transaction; a problem of `run` rolls it back. */
type WriteSteps<Input, Caller extends Principal, Checked, Done extends object> = {
  /** Rejects requests without the database, or returns the checked part of the input. */
  check?: (input: Input) => Checked | Problem;
  /** The use case, in the transaction. */
  run: (change: Change<Caller>, input: Input, checked: Checked) => Promise<Done | Problem>;
  answer: (done: Done, write: Write) => Awaitable<Answer>;
};

export type Charge = (principal: Principal, cost: number) => void;

export type Routes = ReturnType<typeof createRoutes>;

/**
 * Registers routes according to their contracts. A contract defines the access, and whether a request that is repeated
 * with the same `Idempotency-Key` gets the stored response; `run` is then not called.
 */
export function createRoutes(
  options: TimeAndIds & {
    app: App;
    authenticationFor: (access: BearerAccess) => Authenticate;
    writer: Writer;
    /** Large and costly requests of an organization are handled one at a time. */
    turns: Turns;
    /** Counts a cost that was not known when the request was admitted. */
    charge: Charge;
    randomBytes: (size: number) => Buffer;
  },
) {
  const { app, writer, turns, charge, now, newId } = options;
  const answerOnce = createAnswerOnce(options.randomBytes);
  const authenticationFor = <A extends BearerAccess>(access: A) =>
    options.authenticationFor(access) as Authenticate<PrincipalOf<A>>;

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
      authenticate: authenticationFor(contract.access),
      admitBody: (request, principal) => takeTurn(principal, isCostly || isLarge(request.headers)),
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

    function handle(input: RouteInput<P, Q, B>, principal: PrincipalOf<A>) {
      const checked = steps.check?.(input);
      if (checked !== undefined && isProblem(checked)) return checked;
      const work = (write: Write): Promise<Answer | Problem> => {
        const run = async () => {
          const done = await steps.run(changeOf(write, principal), input, checked as Checked);
          return isProblem(done) ? done : steps.answer(done, write);
        };
        if (!idempotent) return run();
        const caller = principal.kind === "operator" ? "operator" : principal.key.id;
        return answerOnce(write.tx, { caller, operationId, ...input }, run);
      };
      return writer(work, (published) => charge(principal, costOfBytes(published)));
    }

    registerRoute(app, contract, {
      authenticate: authenticationFor(contract.access),
      admitBody: (request, principal) => takeTurn(principal, isLarge(request.headers)),
      handle,
    });
  }

  /** Waits for the turn of the organization. The operator needs none. */
  function takeTurn(principal: Principal, isNeeded: boolean) {
    return isNeeded && principal.kind === "key"
      ? turns.take(principal.key.organizationId)
      : undefined;
  }

  function changeOf<Caller extends Principal>(write: Write, principal: Caller): Change<Caller> {
    const author = authorOf(principal);
    const context = (cause: Cause = "manual") =>
      readContext(write.tx, { author, cause }, { now, newId });
    return { ...write, now, newId, principal, context };
  }

  return { read, write };
}
