/**
 * Contractions of the database, as `findContractions` names them, that are safe during a rolling upgrade
 * although a release with a fixture knows the old form. A migration that drops or restricts something belongs
 * here if `expandedIn` is a release after which no statement uses the old form, and upgrades from earlier
 * releases lead over that release.
 */
export const allowedContractions: readonly {
  contraction: string;
  expandedIn: string;
  reason: string;
}[] = [];
