/** Version of the package, as the plugins give it to hapi; a test keeps it equal to `package.json`. */
export const VERSION = '0.1.0';
