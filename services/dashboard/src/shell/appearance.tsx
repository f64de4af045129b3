import { Monitor, Moon, Sun } from "lucide-react";
import { useState } from "react";
import { IconButton } from "../ui/button.tsx";
import { applyTheme, readTheme, type Theme } from "./theme.ts";

const next: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const icons = { system: Monitor, light: Sun, dark: Moon };
const labels: Record<Theme, string> = {
  system: "Colors: as the system",
  light: "Colors: light",
  dark: "Colors: dark",
};

/** Cycles through the colors of the system, light and dark. */
export function AppearanceButton() {
  const [theme, setTheme] = useState(readTheme);
  const choose = () => {
    applyTheme(next[theme]);
    setTheme(next[theme]);
  };
  return <IconButton icon={icons[theme]} iconSize={17} label={labels[theme]} onPress={choose} />;
}
