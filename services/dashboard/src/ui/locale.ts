/**
 * Returns the locale of all words, dates and numbers that the page shows. The texts are English, so only an English
 * locale of the browser fits them: "vor 3 Minuten" between English words would be two languages in one sentence.
 */
export const localeOfPage = (browser: string): string =>
  /^en\b/.test(browser) ? browser : "en-GB";

export const pageLocale = localeOfPage(navigator.language);
