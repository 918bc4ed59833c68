/** The text of an image file, as the bundler provides it. */
declare module '*.svg' {
  const text: string;
  export default text;
}
