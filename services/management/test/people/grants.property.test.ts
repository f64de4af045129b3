import { type Role, roles } from "@halyard/contracts";
import { isProblem } from "@halyard/http";
import { includes, type Place, rightsOfKey, roleAt } from "@halyard/people";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  checkAddition,
  checkWithdrawal,
  type Grant,
  grantedRole,
  type NewGrant,
  roleOfOperator,
} from "../../src/people/grants.ts";

/** Users of one organization. Only a user with a person counts as an owner. */
const people = ["ada", "grace", "joan"];
const users = [...people, "invited", "service"];
const places: Place[] = [
  {},
  { projectId: "shop" },
  { projectId: "shop", environmentId: "staging" },
  { projectId: "shop", environmentId: "production" },
  { projectId: "blog" },
];

/** The grants, and the users who have ever had one. */
type State = { grants: readonly Grant[]; governed: ReadonlySet<string> };
type Step = { by: string } & ({ give: NewGrant } | { withdraw: number });

const scope = fc.constantFrom(
  { projectId: null, environmentIds: null },
  { projectId: "shop", environmentIds: null },
  { projectId: "blog", environmentIds: null },
  { projectId: "shop", environmentIds: ["staging"] },
  { projectId: "shop", environmentIds: ["production", "staging"] },
);
const given = fc
  .record({ role: fc.constantFrom(...roles), scope, userId: fc.constantFrom(...users) })
  .map(({ role, scope: { projectId, environmentIds }, userId }): NewGrant => {
    const isOwner = role === "owner";
    return {
      organizationId: "acme",
      subject: { userId },
      role,
      projectId: isOwner ? null : projectId,
      environmentIds: isOwner ? null : environmentIds,
    };
  });
const by = fc.constantFrom("operator", ...users);
const steps = fc.array(
  fc.oneof(
    fc.record({ by, give: given }),
    fc.record({ by, withdraw: fc.nat({ max: 9 }) }),
  ) as fc.Arbitrary<Step>,
  { maxLength: 40 },
);

const grantsOf = ({ grants }: State, userId: string) =>
  grants
    .filter(({ subject }) => "userId" in subject && subject.userId === userId)
    .map((grant) => grantedRole(grant));
const heldBy = (state: State, userId: string) =>
  userId === "operator" ? roleOfOperator : (place: Place) => roleAt(grantsOf(state, userId), place);
const ownersOf = ({ grants }: State) =>
  grants.flatMap(({ id, role, subject }) =>
    role === "owner" && "userId" in subject && people.includes(subject.userId)
      ? [{ grantId: id, userId: subject.userId }]
      : [],
  );

/** Makes a step unless it is rejected, as the use cases do. */
function next(state: State, step: Step, id: string): State {
  const held = heldBy(state, step.by);
  if ("give" in step) {
    const { subject } = step.give;
    const userId = "userId" in subject ? subject.userId : "";
    const existing = state.grants.filter(
      (grant) => "userId" in grant.subject && grant.subject.userId === userId,
    );
    if (checkAddition(step.give, { held, existing }) !== undefined) return state;
    return {
      grants: [...state.grants, { ...step.give, id, createdAt: new Date(0) }],
      governed: new Set([...state.governed, userId]),
    };
  }
  const grant = state.grants[step.withdraw % Math.max(1, state.grants.length)];
  if (grant === undefined) return state;
  const problem = checkWithdrawal(grant, { held, owners: ownersOf(state) });
  if (isProblem(problem ?? {})) return state;
  return { ...state, grants: state.grants.filter((other) => other !== grant) };
}

/** Runs steps, and shows each one with the states around it. */
function run(all: readonly Step[], check: (before: State, step: Step, after: State) => void): void {
  let state: State = { grants: [], governed: new Set() };
  for (const [index, step] of all.entries()) {
    const after = next(state, step, String(index));
    check(state, step, after);
    state = after;
  }
}

const isAtMost = (role: Role | undefined, most: Role | undefined) =>
  role === undefined || includes(most, role);

describe("any sequence of grants and withdrawals by anybody", () => {
  it("leaves an owner in an organization that had one", () => {
    fc.assert(
      fc.property(steps, (all) =>
        run(all, (before, _, after) => {
          if (ownersOf(before).length > 0) expect(ownersOf(after)).not.toEqual([]);
        }),
      ),
    );
  });

  it("gives no role above the giver's role there", () => {
    fc.assert(
      fc.property(steps, (all) =>
        run(all, (before, step, after) => {
          for (const userId of users)
            for (const place of places) {
              const role = heldBy(after, userId)(place);
              const had = heldBy(before, userId)(place);
              const givers = heldBy(before, step.by)(place);
              expect(isAtMost(role, had) || isAtMost(role, givers)).toBe(true);
            }
        }),
      ),
    );
  });

  it("gives no session and no key more rights by a withdrawal", () => {
    fc.assert(
      fc.property(steps, (all) =>
        run(all, (before, step, after) => {
          if ("give" in step) return;
          for (const userId of users)
            for (const place of places) {
              expect(isAtMost(heldBy(after, userId)(place), heldBy(before, userId)(place))).toBe(
                true,
              );
              const keyIn = (state: State) =>
                rightsOfKey("write", {
                  ...{ governed: state.governed.has(userId), grants: grantsOf(state, userId) },
                }).at(place);
              expect(isAtMost(keyIn(after), keyIn(before))).toBe(true);
            }
        }),
      ),
    );
  });
});
