// Builds the page of `%sfm record`: one script and one style sheet, which sfm_kernel/observe/record
// puts into each file that it writes, and the styles of states for sfm_kernel/observe/timeline. Run
// after tsc: node record.build.js

const { copyFileSync, mkdirSync, readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { rspack } = require('@rspack/core');

// A build in another folder, to compare it with this one, has to create it.
const target = join(__dirname, '../sfm_kernel/observe/record');
const STYLES = ['base', 'graph', 'timeline', 'record'];

const styles = STYLES.map(name => readFileSync(join(__dirname, `style/${name}.css`), 'utf8'));
mkdirSync(target, { recursive: true });
writeFileSync(join(target, 'page.css'), styles.join('\n'));
// The drawings that Python makes have the same colours and hatches.
copyFileSync(join(__dirname, 'src/timeline/states.json'), join(target, 'states.json'));

const react = join(__dirname, 'node_modules/react-dom');
const { version } = JSON.parse(readFileSync(join(react, 'package.json'), 'utf8'));
const licence = readFileSync(join(react, 'LICENSE'), 'utf8');
const LAST = rspack.Compilation.PROCESS_ASSETS_STAGE_REPORT;

const options = {
  mode: 'production',
  context: __dirname,
  entry: './lib/record/index.js',
  output: { path: target, filename: 'page.js' },
  target: ['web', 'es2021'],
  devtool: false,
  performance: false,
  optimization: {
    moduleIds: 'natural',
    chunkIds: 'natural',
    minimizer: [new rspack.SwcJsMinimizerRspackPlugin({ format: { comments: false } })]
  },
  // React's licence asks for this.
  plugins: [new rspack.BannerPlugin({ banner: `React ${version}. ${licence}`, stage: LAST })]
};

rspack(options, (error, stats) => {
  if (error || stats.hasErrors()) {
    console.error(error ?? stats.toString('errors-only'));
    process.exitCode = 1;
  }
});
