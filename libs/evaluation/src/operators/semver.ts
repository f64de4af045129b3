import type { Scalar } from "../attributes.ts";
import { compareVersions, type Version } from "../semver.ts";
import { type Subject, versionOf } from "../subject.ts";
import type { OperatorOf } from "./catalogue.ts";
import { type Comparison, type Obstacle, obstacleOfFirst } from "./operator.ts";

/** Compiles `semver_eq`, `semver_gt`, `semver_gte`, `semver_lt` and `semver_lte`: comparison by precedence. */
export function compileSemver(
  operator: OperatorOf<"semver">,
  value: Scalar,
): Comparison | undefined {
  const wanted = versionOf(value);
  const accepts = acceptedOrders[operator];
  if (wanted === undefined) return undefined;
  const isAccepted = (version: Version | null | undefined) =>
    version != null && accepts(compareVersions(version, wanted));
  return {
    holds: ({ version }) => isAccepted(version),
    // If any version is accepted, so is one of these: the first, the last, or the first not before `wanted`.
    holdsForAny: ({ versions }) =>
      isAccepted(versions[0]) ||
      isAccepted(versions.at(-1)) ||
      isAccepted(versions[firstNotBefore(versions, wanted)]),
    negated: false,
    obstacle,
    obstacleForAll: (elements) =>
      elements.versions.length > 0 ? undefined : obstacleOfFirst(elements, obstacle),
  };
}

/** Returns the index of the first sorted version that does not precede `wanted`. */
function firstNotBefore(versions: readonly Version[], wanted: Version): number {
  let from = 0;
  let to = versions.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    const version = versions[middle];
    if (version !== undefined && compareVersions(version, wanted) < 0) from = middle + 1;
    else to = middle;
  }
  return from;
}

const acceptedOrders: { readonly [operator in OperatorOf<"semver">]: (order: number) => boolean } =
  {
    semver_eq: (order) => order === 0,
    semver_gt: (order) => order > 0,
    semver_gte: (order) => order >= 0,
    semver_lt: (order) => order < 0,
    semver_lte: (order) => order <= 0,
  };

function obstacle(subject: Subject): Obstacle | undefined {
  if (typeof subject.value !== "string") return "wrong_type";
  return subject.version === null ? "not_comparable" : undefined;
}
