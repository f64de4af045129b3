import { randomUUID } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { hasCode } from "./process-identity.ts";
import { findProcessesIn } from "./stale-postmaster.ts";

/**
 * Where root starts Halyard below a directory that is closed to others, PostgreSQL's own user cannot
 * reach the data directory that was wished for. The data then lie in a place open to all, in
 * `data-<instance id>`, and the wished directory, their home, keeps that id. The id is random, so a
 * new home never meets the data of an older one that had the same path. Beside the data,
 * `data-<instance id>.json` names the home, so that data whose home was deleted can be swept.
 */
type HomeRecord = { home: string; device: number };

const ID_FILE = "instance-id";
const ID_PATTERN = /^[0-9a-f-]{36}$/;

/** The directory of this home's data in the open place, made if need be; undefined if none and not asked to make it. */
export function findDataElsewhere(home: string, place: string): string | undefined {
  const id = readInstanceId(home);
  if (id === undefined) return undefined;
  const directory = join(place, `data-${id}`);
  return existsSync(directory) ? directory : undefined;
}

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

/** Removes data whose home was deleted; data in use, and data of homes that are not mounted now, stay. */
export function sweepAbandonedData(place: string, onStep: (text: string) => void): void {
  for (const file of listDirectory(place)) {
    const id = /^data-(.+)\.json$/.exec(file)?.[1];
    if (id === undefined) continue;
    const directory = join(place, `data-${id}`);
    const record = readRecord(`${directory}.json`);
    if (record === undefined || !isHomeDeleted(record, id)) continue;
    if (findProcessesIn(join(directory, "cluster")).length > 0) continue;
    onStep(`removing ${directory}: its home ${record.home} was deleted`);
    rmSync(directory, { recursive: true, force: true });
    rmSync(`${directory}.json`, { force: true });
  }
}

/** A home that was copied carries the id of the first one, whose data it must not share. */
function isCopyOfLivingHome(claim: { id: string; home: string; place: string }): boolean {
  const record = readRecord(join(claim.place, `data-${claim.id}.json`));
  if (record === undefined || record.home === claim.home) return false;
  return readInstanceId(record.home) === claim.id;
}

/**
 * A home that is missing may also lie on a disk that is not mounted. It counts as deleted only where
 * the nearest directory that is left lies on the same file system as the home did.
 */
function isHomeDeleted(record: HomeRecord, id: string): boolean {
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
