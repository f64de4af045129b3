import type { ReactElement } from "react";
import { Tooltip as AriaTooltip, OverlayArrow, TooltipTrigger } from "react-aria-components";
import styles from "./overlay.module.css";

/** Shows a short text beside a focusable element while it has the focus or the pointer. */
export function Tooltip({ text, children }: { text: string; children: ReactElement }) {
  return (
    <TooltipTrigger delay={400} closeDelay={50}>
      {children}
      <AriaTooltip className={styles.tooltip ?? ""} offset={6}>
        <OverlayArrow />
        {text}
      </AriaTooltip>
    </TooltipTrigger>
  );
}
