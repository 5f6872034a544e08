from unmask.cli import main

main()
