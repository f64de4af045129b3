/**
 * A page of the history or the audit log is shorter than its limit where what it says would be longer
 * than this, as JSON in the database: a thousand of the largest sets of rules would not fit into a
 * process. The twenty entries that the history answers by default always fit.
 */
export const longestPageBytes = 16 * 1024 * 1024;

/** Where a page begins that begins with the newest. No identity column ever gets this far. */
export const afterEverySequence = Number.MAX_SAFE_INTEGER;
