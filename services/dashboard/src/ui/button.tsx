import { Link, type LinkProps } from "@tanstack/react-router";
import type { LucideIcon } from "lucide-react";
import { type ReactNode, useId } from "react";
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

type ButtonProps = Omit<AriaButtonProps, "className" | "children"> &
  Look & {
    children: ReactNode;
    /** Why the button is disabled. It stays focusable then, so that everybody can read the reason. */
    whyNot?: string | undefined;
  };

/** A button. With `isPending` it keeps its width and shows progress to sighted people and screen readers. */
export function Button({ whyNot, ...props }: ButtonProps) {
  if (whyNot !== undefined) return <BlockedButton {...props} whyNot={whyNot} />;
  const { variant, size, ...button } = props;
  return <AriaButton {...button} className={classOf({ variant, size })} />;
}

/** A disabled button that says why: by a tooltip, and as its description for screen readers. */
function BlockedButton(props: ButtonProps & { whyNot: string }) {
  const { variant, size, whyNot, children, "aria-label": label } = props;
  const reason = useId();
  return (
    <>
      <Tooltip text={whyNot}>
        <AriaButton
          {...(label !== undefined && { "aria-label": label })}
          aria-describedby={reason}
          aria-disabled="true"
          className={`${classOf({ variant, size })} ${styles.blocked}`}
        >
          {children}
        </AriaButton>
      </Tooltip>
      <span id={reason} hidden>
        {whyNot}
      </span>
    </>
  );
}

type IconButtonProps = Omit<ButtonProps, "aria-label" | "children" | "whyNot"> & {
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
