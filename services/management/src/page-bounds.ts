/**
 * Maximum size of a page of flags, of the history or of the audit log, as JSON in the database. A page ends before its
 * limit where it would be larger: a thousand of the largest sets of rules would not fit into a process. The twenty
 * entries that the history answers by default always fit.
 */
export const maxPageBytes = 16 * 1024 * 1024;

/** Sequence before which a page begins with the newest entry. No identity column ever gets this far. */
export const afterEverySequence = Number.MAX_SAFE_INTEGER;
