// Builds the pages that show the panel's widgets without JupyterLab, each one script and one style
// sheet: that of `%sfm record`, which sfm_kernel/observe/record puts into each file that it writes,
// and that of a class. Also the styles of states for sfm_kernel/observe/timeline. Run after tsc:
// node pages.build.js

const { copyFileSync, mkdirSync, readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { rspack } = require('@rspack/core');

// The styles of widgets come after those of all pages, which they refine.
const PAGES = [
  {
    entry: './lib/record/index.js',
    target: join(__dirname, '../sfm_kernel/observe/record'),
    styles: ['page', 'base', 'graph', 'timeline', 'record']
  },
  {
    entry: './lib/classroom/index.js',
    target: join(__dirname, '../sfm_kernel/classroom'),
    styles: ['page', 'base', 'table', 'why', 'graph', 'classroom']
  }
];

for (const { target, styles } of PAGES) {
  const texts = styles.map(name => readFileSync(join(__dirname, `style/${name}.css`), 'utf8'));
  mkdirSync(target, { recursive: true }); // a build in another folder, to compare it with this one
  writeFileSync(join(target, 'page.css'), texts.join('\n'));
}
// The drawings that Python makes have the same colours and hatches.
copyFileSync(join(__dirname, 'src/timeline/states.json'), join(PAGES[0].target, 'states.json'));

const react = join(__dirname, 'node_modules/react-dom');
const { version } = JSON.parse(readFileSync(join(react, 'package.json'), 'utf8'));
const licence = readFileSync(join(react, 'LICENSE'), 'utf8');
const LAST = rspack.Compilation.PROCESS_ASSETS_STAGE_REPORT;

const options = ({ entry, target }) => ({
  mode: 'production',
  context: __dirname,
  entry,
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
});

rspack(PAGES.map(options), (error, stats) => {
  if (error || stats.hasErrors()) {
    console.error(error ?? stats.toString('errors-only'));
    process.exitCode = 1;
  }
});
