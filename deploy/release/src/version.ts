/**
 * Returns the requested version. `wanted` is a version, or the part of the current one to raise. Undefined if invalid.
 */
export function nextVersion(present: string, wanted: string): string | undefined {
  const [major, minor, patch] = numbersOf(present);
  switch (wanted) {
    case "major":
      return `${major + 1}.0.0`;
    case "minor":
      return `${major}.${minor + 1}.0`;
    case "patch":
      return `${major}.${minor}.${patch + 1}`;
    default:
      return /^(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}$/.test(wanted) ? wanted : undefined;
  }
}

export function isHigher(version: string, than: string): boolean {
  const numbers = numbersOf(version);
  const others = numbersOf(than);
  const first = numbers.findIndex((number, index) => number !== others[index]);
  return first !== -1 && Number(numbers[first]) > Number(others[first]);
}

function numbersOf(version: string): [number, number, number] {
  return version.split(".").map(Number) as [number, number, number];
}
