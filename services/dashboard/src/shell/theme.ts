/** Colors as the system wants them, or as a person has chosen. */
export type Theme = "system" | "light" | "dark";

const storageKey = "halyard.theme";

export function readTheme(): Theme {
  const stored = localStorage.getItem(storageKey);
  return stored === "light" || stored === "dark" ? stored : "system";
}

/** Applies a theme, and keeps it for the next visit. */
export function applyTheme(theme: Theme): void {
  if (theme === "system") {
    localStorage.removeItem(storageKey);
    delete document.documentElement.dataset.theme;
    return;
  }
  localStorage.setItem(storageKey, theme);
  document.documentElement.dataset.theme = theme;
}
