/**
 * Maximum size of a page of flags, history entries or audit entries, as JSON in the database. A page that reaches the
 * limit ends early, because a thousand entries of the largest size do not fit into the memory of a process. The default
 * page of 20 history entries always fits.
 */
export const maxPageBytes = 16 * 1024 * 1024;

/** Upper bound of sequences: a page before it begins with the newest entry. No identity column reaches this value. */
export const afterEverySequence = Number.MAX_SAFE_INTEGER;
