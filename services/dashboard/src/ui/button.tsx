import { Link, type LinkProps } from "@tanstack/react-router";
import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import { Button as AriaButton, type ButtonProps as AriaButtonProps } from "react-aria-components";
import styles from "./button.module.css";
import { Tooltip } from "./tooltip.tsx";

type Look = {
  /** `primary`: the main action of a page, at most one. `danger`: deletes or revokes. */
  variant?: "primary" | "secondary" | "quiet" | "danger" | undefined;
  size?: "medium" | "small" | undefined;
};

const classOf = ({ variant = "secondary", size = "medium" }: Look, icon = false) =>
  [styles.button, styles[variant], styles[size], icon ? styles.icon : ""].join(" ");

type ButtonProps = Omit<AriaButtonProps, "className"> & Look;

/** A button. With `isPending` it keeps its width and shows progress to sighted people and screen readers. */
export function Button({ variant, size, ...props }: ButtonProps) {
  return <AriaButton {...props} className={classOf({ variant, size })} />;
}

type IconButtonProps = Omit<ButtonProps, "aria-label" | "children"> & {
  label: string;
  icon: LucideIcon;
  iconSize?: number;
};

/** A button that shows only an icon. Its label is a tooltip and the name for screen readers. */
export function IconButton({
  label,
  icon: Icon,
  iconSize = 16,
  variant = "quiet",
  size = "medium",
  ...props
}: IconButtonProps) {
  return (
    <Tooltip text={label}>
      <AriaButton {...props} aria-label={label} className={classOf({ variant, size }, true)}>
        <Icon size={iconSize} aria-hidden />
      </AriaButton>
    </Tooltip>
  );
}

type ButtonLinkProps = LinkProps & Look & { children: ReactNode };

/** A link that looks like a button, for actions that lead to another page. */
export function ButtonLink({ variant, size, ...props }: ButtonLinkProps) {
  return <Link {...props} className={classOf({ variant, size })} />;
}
