/**
 * Contractions of the database, as returned by `findContractions`, that are safe in a rolling upgrade although a
 * release from 0.2.0 on uses the old form. A migration that drops or restricts something belongs here if no statement
 * of the release `expandedIn` uses the old form. Upgrades from earlier releases then go through that release.
 */
export const allowedContractions: readonly {
  contraction: string;
  expandedIn: string;
  reason: string;
}[] = [];
