import styles from "./logo.module.css";

export function Logo() {
  return (
    <span className={styles.logo}>
      <svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true">
        <rect width="32" height="32" rx="7" fill="#3451d1" />
        <path d="M10 6v20" stroke="#fff" strokeWidth="2.5" strokeLinecap="round" />
        <path d="M10 8l14 4.5L10 17z" fill="#fff" />
      </svg>
      Halyard
    </span>
  );
}
