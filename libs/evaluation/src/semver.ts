/** The parts of a version that determine its precedence in Semantic Versioning 2.0.0. */
export type Version = {
  /** Major, minor and patch as texts, because a number can have any length. */
  readonly core: readonly string[];
  /** The dot-separated identifiers after the hyphen. Empty for a release. */
  readonly preRelease: readonly string[];
};

const number = /^(?:0|[1-9][0-9]*)$/;
const digits = /^[0-9]+$/;
const identifier = /^[0-9A-Za-z-]+$/;

const numberSource = "(?:0|[1-9][0-9]*)";
const preReleaseSource = `(?:${numberSource}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)`;

/** Regular expression for the texts that `parseVersion` accepts, for JSON Schema. */
export const semverPattern =
  `^v?${numberSource}(?:\\.${numberSource}){0,2}` +
  `(?:-${preReleaseSource}(?:\\.${preReleaseSource})*)?` +
  "(?:\\+[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)?$";

/**
 * Parses a version. A leading `v` is allowed, and `1` and `1.2` mean `1.0.0` and `1.2.0`. Otherwise returns undefined
 * for any text that is not a version by the specification.
 */
export function parseVersion(text: string): Version | undefined {
  const plus = text.indexOf("+");
  if (
    plus !== -1 &&
    !text
      .slice(plus + 1)
      .split(".")
      .every((part) => identifier.test(part))
  ) {
    return undefined;
  }
  const start = text.startsWith("v") ? 1 : 0;
  const withoutBuild = text.slice(start, plus === -1 ? text.length : plus);
  const hyphen = withoutBuild.indexOf("-");
  const core = (hyphen === -1 ? withoutBuild : withoutBuild.slice(0, hyphen)).split(".");
  if (core.length > 3 || !core.every((part) => number.test(part))) return undefined;
  while (core.length < 3) core.push("0");
  const preRelease = hyphen === -1 ? [] : withoutBuild.slice(hyphen + 1).split(".");
  return preRelease.every(isPreReleaseIdentifier) ? { core, preRelease } : undefined;
}

function isPreReleaseIdentifier(text: string): boolean {
  return identifier.test(text) && (!digits.test(text) || number.test(text));
}

/** Compares by precedence: negative if `a` precedes `b`, zero if they are equal, otherwise positive. */
export function compareVersions(a: Version, b: Version): number {
  for (let i = 0; i < 3; i++) {
    const order = compareNumbers(a.core[i] ?? "", b.core[i] ?? "");
    if (order !== 0) return order;
  }
  return comparePreReleases(a.preRelease, b.preRelease);
}

/** A release follows its pre-releases. A pre-release follows those that are its prefix. */
function comparePreReleases(a: readonly string[], b: readonly string[]): number {
  if (a.length === 0 || b.length === 0) return b.length - a.length;
  for (let i = 0; i < a.length && i < b.length; i++) {
    const order = compareIdentifiers(a[i] ?? "", b[i] ?? "");
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** Numbers precede words. Numbers compare by size, words in ASCII order. */
function compareIdentifiers(a: string, b: string): number {
  const aIsNumber = digits.test(a);
  if (aIsNumber !== digits.test(b)) return aIsNumber ? -1 : 1;
  return aIsNumber ? compareNumbers(a, b) : compareTexts(a, b);
}

/** Compares integers of any length. Without leading zeros, the longer one is the larger one. */
function compareNumbers(a: string, b: string): number {
  return a.length === b.length ? compareTexts(a, b) : a.length - b.length;
}

function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
