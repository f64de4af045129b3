export { createDeletions, type Deletions } from "./deletions.ts";
export { createFlagIndex, type FlagAddress } from "./flag-index.ts";
export {
  collectRead,
  type FollowedSnapshot,
  followSnapshot,
  type SnapshotFollower,
  type SnapshotPart,
  type SnapshotRead,
} from "./follow-snapshot.ts";
export { type HeldSnapshot, maxGapMs } from "./resume-point.ts";
export {
  findComplete,
  purgeComplete,
  purgeEntriesBefore,
  snapshotPosition,
} from "./snapshot-bucket.ts";
