import { randomUUID } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { hasCode } from "./process-identity.ts";
import { findProcessesIn } from "./stale-postmaster.ts";

/**
 * PostgreSQL's user cannot reach a data directory below a directory that is closed to others. Root
 * then keeps the data in a place open to all, in `data-<instance id>`, and the data directory, their
 * home, keeps the id. The id is random, so that a new home never uses the data of an older home at the
 * same path. A home that is renamed takes its id and therefore its data along.
 *
 * `data-<instance id>.json` names the home. Data whose home is missing there are reported as abandoned
 * and never deleted: a renamed home that has not started since looks the same as a deleted one.
 */
type HomeRecord = { home: string; device: number };

const ID_FILE = "instance-id";
const ID_PATTERN = /^[0-9a-f-]{36}$/;

/** Returns the directory of this home's data in the open place, or undefined without one. */
export function findDataElsewhere(home: string, place: string): string | undefined {
  const id = readInstanceId(home);
  if (id === undefined) return undefined;
  const directory = join(place, `data-${id}`);
  return existsSync(directory) ? directory : undefined;
}

/** Returns the directory of this home's data in the open place; creates it on the first start. */
export function claimDataElsewhere(home: string, place: string): string {
  mkdirSync(place, { recursive: true, mode: 0o755 });
  const canonicalHome = realpathSync(home);
  let id = readInstanceId(home);
  if (id === undefined || isCopyOfLivingHome({ id, home: canonicalHome, place })) {
    id = randomUUID();
    writeFileSync(join(home, ID_FILE), `${id}\n`, { mode: 0o644 });
  }
  const directory = join(place, `data-${id}`);
  mkdirSync(directory, { recursive: true, mode: 0o711 });
  const record: HomeRecord = { home: canonicalHome, device: statSync(canonicalHome).dev };
  writeFileSync(`${directory}.json`, `${JSON.stringify(record)}\n`, { mode: 0o600 });
  writeFileSync(
    join(home, "README"),
    `The user that runs PostgreSQL cannot reach this directory. The data are in ${directory}.\n`,
  );
  return directory;
}

/** Reports data whose home is missing, except data in use and data of homes that are not mounted. */
export function reportAbandonedData(place: string, onStep: (text: string) => void): void {
  for (const file of listDirectory(place)) {
    const id = /^data-(.+)\.json$/.exec(file)?.[1];
    if (id === undefined) continue;
    const directory = join(place, `data-${id}`);
    const record = readRecord(`${directory}.json`);
    if (record === undefined || !isHomeMissing(record, id)) continue;
    if (findProcessesIn(join(directory, "cluster")).length > 0) continue;
    onStep(
      `${directory} holds a database whose home ${record.home} was deleted or renamed. ` +
        "The next start in the renamed home uses it. " +
        `If the home was deleted, remove the database: rm -r '${directory}' '${directory}.json'`,
    );
  }
}

/** A home that was copied carries the id of the first one, whose data it must not share. */
function isCopyOfLivingHome(claim: { id: string; home: string; place: string }): boolean {
  const record = readRecord(join(claim.place, `data-${claim.id}.json`));
  if (record === undefined || record.home === claim.home) return false;
  return readInstanceId(record.home) === claim.id;
}

/**
 * A home may be absent because its disk is not mounted. It counts as missing only if its nearest
 * existing ancestor is on the file system that held the home.
 */
function isHomeMissing(record: HomeRecord, id: string): boolean {
  if (readInstanceId(record.home) === id) return false;
  let ancestor = record.home;
  while (!existsSync(ancestor)) ancestor = dirname(ancestor);
  return statSync(ancestor).dev === record.device;
}

function readInstanceId(home: string): string | undefined {
  const id = readIfPresent(join(home, ID_FILE))?.trim();
  return id !== undefined && ID_PATTERN.test(id) ? id : undefined;
}

function readRecord(file: string): HomeRecord | undefined {
  const text = readIfPresent(file);
  return text === undefined ? undefined : (JSON.parse(text) as HomeRecord);
}

function readIfPresent(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
}

function listDirectory(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}
